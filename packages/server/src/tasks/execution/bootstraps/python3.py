"""Runs the handler of a Python task over the Lambda Runtime API."""

import http.client
import importlib
import json
import os
import sys
import time
import traceback

LARGEST_ANSWER = 6 * 1024 * 1024
BASE = "/2018-06-01/runtime"


class RuntimeApi:
    """One connection to the Runtime API, opened again when it was closed."""

    def __init__(self, address):
        host, _, prefix = address.partition("/")
        self.host = host
        self.base = ("/" + prefix if prefix else "") + BASE
        self.connection = None

    def call(self, method, path, body=None, headers=None):
        for attempt in (1, 2):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.host)
            try:
                self.connection.request(method, self.base + path, body, headers or {})
                response = self.connection.getresponse()
                return response.status, response.headers, response.read()
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                if attempt == 2:
                    raise


class Context:
    def __init__(self, headers):
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.invoked_function_arn = headers["Lambda-Runtime-Invoked-Function-Arn"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = "/millrace/" + self.function_name
        self.log_stream_name = self.function_version
        self.identity = None
        self.client_context = None
        self._deadline = int(headers["Lambda-Runtime-Deadline-Ms"])

    def get_remaining_time_in_millis(self):
        return max(0, self._deadline - int(time.time() * 1000))


def describe(error):
    trace = traceback.format_exception(type(error), error, error.__traceback__)
    lines = [line for part in trace for line in part.rstrip("\n").split("\n")]
    return {"errorType": type(error).__name__, "errorMessage": str(error), "stackTrace": lines[-50:]}


def load_handler(name):
    module_path, dot, function = name.replace("/", ".").rpartition(".")
    if not dot:
        raise ValueError('The handler "%s" is not of the form file.function.' % name)
    found = getattr(importlib.import_module(module_path), function, None)
    if not callable(found):
        raise AttributeError('%s has no function "%s" for the handler "%s".' % (module_path, function, name))
    return found


def flush():
    sys.stdout.flush()
    sys.stderr.flush()


def post_error(api, path, error):
    headers = {"Lambda-Runtime-Function-Error-Type": error["errorType"]}
    api.call("POST", path, json.dumps(error).encode(), headers)


def serve(api, handler):
    while True:
        status, headers, body = api.call("GET", "/invocation/next")
        if status != 200:
            raise RuntimeError("The service answered %d." % status)
        request = "/invocation/" + headers["Lambda-Runtime-Aws-Request-Id"]
        try:
            answer = handler(json.loads(body), Context(headers))
            payload = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
            if len(payload) > LARGEST_ANSWER:
                raise ValueError("The answer has %d bytes, more than the %d allowed." % (len(payload), LARGEST_ANSWER))
        except Exception as error:
            flush()
            post_error(api, request + "/error", describe(error))
        else:
            flush()
            api.call("POST", request + "/response", payload)


def main():
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    sys.path[0] = os.environ["LAMBDA_TASK_ROOT"]
    try:
        handler = load_handler(os.environ["_HANDLER"])
    except BaseException as error:
        flush()
        post_error(api, "/init/error", describe(error))
        sys.exit(1)
    serve(api, handler)


main()
