import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.net.HttpURLConnection;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Runs the handler of a Java task over the Lambda Runtime API. */
public final class Bootstrap {
  private static final int LARGEST_ANSWER = 6 * 1024 * 1024;
  private static final String BASE =
      "http://" + System.getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime";

  private record Answer(int status, HttpURLConnection connection, byte[] body) {}

  private interface Handler {
    byte[] handle(byte[] event, Map<String, Object> context) throws Throwable;
  }

  public static void main(String[] arguments) throws Exception {
    Handler handler = null;
    try {
      handler = load(System.getenv("_HANDLER"), Paths.get(System.getenv("LAMBDA_TASK_ROOT")));
    } catch (Throwable error) {
      flush();
      post("/init/error", describe(error));
      System.exit(1);
    }
    while (true) {
      Answer next = call("GET", "/invocation/next", null);
      if (next.status() != 200) throw new IllegalStateException("The service answered " + next.status());
      String request = next.connection().getHeaderField("Lambda-Runtime-Aws-Request-Id");
      try {
        byte[] answer = handler.handle(next.body(), context(next.connection(), request));
        if (answer.length > LARGEST_ANSWER) {
          throw new IllegalArgumentException(
              "The answer has " + answer.length + " bytes, more than the " + LARGEST_ANSWER + " allowed.");
        }
        flush();
        call("POST", "/invocation/" + request + "/response", answer);
      } catch (Throwable error) {
        flush();
        post("/invocation/" + request + "/error", describe(error));
        if (error instanceof VirtualMachineError) System.exit(1);
      }
    }
  }

  private static void flush() {
    System.out.flush();
    System.err.flush();
  }

  private static Answer call(String method, String path, byte[] body) throws Exception {
    HttpURLConnection connection = (HttpURLConnection) new URL(BASE + path).openConnection();
    connection.setRequestMethod(method);
    if (body != null) {
      connection.setDoOutput(true);
      connection.setFixedLengthStreamingMode(body.length);
      try (OutputStream out = connection.getOutputStream()) {
        out.write(body);
      }
    }
    int status = connection.getResponseCode();
    InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream();
    byte[] answer = in == null ? new byte[0] : in.readAllBytes();
    if (in != null) in.close();
    return new Answer(status, connection, answer);
  }

  private static void post(String path, Map<String, Object> error) throws Exception {
    call("POST", path, Json.write(error).getBytes(StandardCharsets.UTF_8));
  }

  private static Map<String, Object> describe(Throwable thrown) {
    Throwable error = thrown instanceof InvocationTargetException && thrown.getCause() != null ? thrown.getCause() : thrown;
    Map<String, Object> described = new LinkedHashMap<>();
    described.put("errorType", error.getClass().getName());
    described.put("errorMessage", error.getMessage() == null ? error.toString() : error.getMessage());
    List<Object> trace = new ArrayList<>();
    for (StackTraceElement element : error.getStackTrace()) {
      if (trace.size() < 50) trace.add(element.toString());
    }
    described.put("stackTrace", trace);
    return described;
  }

  private static Map<String, Object> context(HttpURLConnection next, String request) {
    long deadline = Long.parseLong(next.getHeaderField("Lambda-Runtime-Deadline-Ms"));
    Map<String, Object> context = new LinkedHashMap<>();
    context.put("awsRequestId", request);
    context.put("functionName", System.getenv("AWS_LAMBDA_FUNCTION_NAME"));
    context.put("functionVersion", System.getenv("AWS_LAMBDA_FUNCTION_VERSION"));
    context.put("memoryLimitInMB", Integer.valueOf(System.getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")));
    context.put("invokedFunctionArn", next.getHeaderField("Lambda-Runtime-Invoked-Function-Arn"));
    context.put("deadlineMs", deadline);
    return context;
  }

  /** `package.Class::method`; without a method `handleRequest`, as the interfaces of Lambda name it. */
  private static Handler load(String name, Path root) throws Exception {
    int colons = name.indexOf("::");
    String className = colons < 0 ? name : name.substring(0, colons);
    String methodName = colons < 0 ? "handleRequest" : name.substring(colons + 2);
    Class<?> type = Class.forName(className, true, classes(root));
    Method method = choose(type, methodName);
    method.setAccessible(true);
    Object target = null;
    if (!Modifier.isStatic(method.getModifiers())) {
      Constructor<?> constructor = type.getDeclaredConstructor();
      constructor.setAccessible(true);
      target = constructor.newInstance();
    }
    return handlerOf(method, target);
  }

  private static Method choose(Class<?> type, String name) throws NoSuchMethodException {
    Method best = null;
    for (Class<?> from = type; from != null && best == null; from = from.getSuperclass()) {
      for (Method method : from.getDeclaredMethods()) {
        if (!method.getName().equals(name) || method.isBridge() || method.getParameterCount() > 3) continue;
        if (best == null || method.getParameterCount() > best.getParameterCount()) best = method;
      }
    }
    if (best == null) throw new NoSuchMethodException(type.getName() + " has no method \"" + name + "\".");
    return best;
  }

  private static Handler handlerOf(Method method, Object target) {
    Class<?>[] types = method.getParameterTypes();
    if (types.length >= 2 && types[0] == InputStream.class && types[1] == OutputStream.class) {
      return (event, context) -> {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Object in = new ByteArrayInputStream(event);
        if (types.length == 2) method.invoke(target, in, out);
        else method.invoke(target, in, out, contextFor(types[2], context));
        return out.size() == 0 ? "null".getBytes(StandardCharsets.UTF_8) : out.toByteArray();
      };
    }
    return (event, context) -> {
      Object[] arguments = new Object[types.length];
      if (types.length > 0) arguments[0] = eventFor(types[0], event);
      for (int at = 1; at < types.length; at++) arguments[at] = contextFor(types[at], context);
      return Json.write(method.invoke(target, arguments)).getBytes(StandardCharsets.UTF_8);
    };
  }

  private static Object eventFor(Class<?> type, byte[] event) {
    String text = new String(event, StandardCharsets.UTF_8);
    if (type == byte[].class) return event;
    Object parsed = Json.parse(text);
    if (type == String.class) return parsed instanceof String ? parsed : text;
    if (parsed == null || type.isInstance(parsed)) return parsed;
    if (parsed instanceof Number number) {
      if (type == int.class || type == Integer.class) return number.intValue();
      if (type == long.class || type == Long.class) return number.longValue();
      if (type == double.class || type == Double.class) return number.doubleValue();
    }
    throw new IllegalArgumentException(
        "The event cannot become " + type.getName() + ": take a Map, an Object, a String or streams.");
  }

  /** A map where the handler takes one, else whatever interface it names, answered by the map. */
  private static Object contextFor(Class<?> type, Map<String, Object> context) {
    if (type.isInstance(context)) return context;
    if (!type.isInterface()) return null;
    return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
      String name = method.getName();
      if (name.equals("getRemainingTimeInMillis")) {
        long left = Math.max(0, (Long) context.get("deadlineMs") - System.currentTimeMillis());
        return method.getReturnType() == int.class ? (Object) (int) left : (Object) left;
      }
      if (name.equals("getLogger")) return loggerFor(method.getReturnType());
      if (name.equals("toString")) return context.toString();
      if (name.startsWith("get") && name.length() > 3) {
        return context.get(Character.toLowerCase(name.charAt(3)) + name.substring(4));
      }
      return null;
    });
  }

  private static Object loggerFor(Class<?> type) {
    return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
      if (method.getName().equals("log") && arguments != null) {
        System.out.println(arguments[0] instanceof byte[] bytes ? new String(bytes, StandardCharsets.UTF_8) : arguments[0]);
      }
      return null;
    });
  }

  /** Classes and jars as they lie in the code. */
  private static ClassLoader classes(Path root) throws Exception {
    List<Path> paths = new ArrayList<>(List.of(root));
    for (Path folder : List.of(root, root.resolve("lib"))) {
      if (!Files.isDirectory(folder)) continue;
      try (Stream<Path> files = Files.list(folder)) {
        files.filter(file -> file.toString().endsWith(".jar")).sorted().forEach(paths::add);
      }
    }
    URL[] urls = new URL[paths.size()];
    for (int at = 0; at < urls.length; at++) urls[at] = paths.get(at).toUri().toURL();
    return new URLClassLoader(urls, Bootstrap.class.getClassLoader());
  }
}

/** As much of JSON as events and answers need. */
final class Json {
  private final String text;
  private int at = 0;

  private Json(String text) {
    this.text = text;
  }

  static Object parse(String text) {
    Json json = new Json(text);
    Object value = json.value();
    json.space();
    if (json.at != text.length()) throw json.wrong();
    return value;
  }

  private IllegalArgumentException wrong() {
    return new IllegalArgumentException("The event is not JSON at character " + at + ".");
  }

  private void space() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
  }

  private boolean next(char wanted) {
    space();
    if (at < text.length() && text.charAt(at) == wanted) {
      at++;
      return true;
    }
    return false;
  }

  private Object value() {
    space();
    if (at >= text.length()) throw wrong();
    char first = text.charAt(at);
    if (first == '{') return object();
    if (first == '[') return array();
    if (first == '"') return string();
    for (Object[] word : new Object[][] {{"true", true}, {"false", false}, {"null", null}}) {
      if (text.startsWith((String) word[0], at)) {
        at += ((String) word[0]).length();
        return word[1];
      }
    }
    return number();
  }

  private Map<String, Object> object() {
    Map<String, Object> map = new LinkedHashMap<>();
    at++;
    if (next('}')) return map;
    do {
      space();
      String key = string();
      if (!next(':')) throw wrong();
      map.put(key, value());
    } while (next(','));
    if (!next('}')) throw wrong();
    return map;
  }

  private List<Object> array() {
    List<Object> list = new ArrayList<>();
    at++;
    if (next(']')) return list;
    do {
      list.add(value());
    } while (next(','));
    if (!next(']')) throw wrong();
    return list;
  }

  private String string() {
    if (at >= text.length() || text.charAt(at) != '"') throw wrong();
    StringBuilder out = new StringBuilder();
    for (at++; at < text.length(); at++) {
      char c = text.charAt(at);
      if (c == '"') {
        at++;
        return out.toString();
      }
      if (c != '\\') {
        out.append(c);
        continue;
      }
      if (++at >= text.length()) throw wrong();
      char escaped = text.charAt(at);
      int known = "bfnrt".indexOf(escaped);
      if (known >= 0) out.append("\b\f\n\r\t".charAt(known));
      else if (escaped == 'u') {
        if (at + 4 >= text.length()) throw wrong();
        out.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
        at += 4;
      } else out.append(escaped);
    }
    throw wrong();
  }

  private Number number() {
    int start = at;
    while (at < text.length() && "+-0123456789.eE".indexOf(text.charAt(at)) >= 0) at++;
    String digits = text.substring(start, at);
    if (digits.isEmpty()) throw wrong();
    if (digits.indexOf('.') >= 0 || digits.indexOf('e') >= 0 || digits.indexOf('E') >= 0) return Double.valueOf(digits);
    try {
      long whole = Long.parseLong(digits);
      if (whole == (int) whole) return (int) whole;
      return whole;
    } catch (NumberFormatException tooLong) {
      return new java.math.BigDecimal(digits);
    }
  }

  static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out, 0);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out, int depth) {
    if (depth > 200) throw new IllegalArgumentException("The answer is nested too deeply.");
    if (value == null || value instanceof Boolean) out.append(value);
    else if (value instanceof Double d && !Double.isFinite(d)) out.append("null");
    else if (value instanceof Number) out.append(value);
    else if (value instanceof Map<?, ?> map) {
      out.append('{');
      String comma = "";
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        out.append(comma);
        quote(String.valueOf(entry.getKey()), out);
        out.append(':');
        write(entry.getValue(), out, depth + 1);
        comma = ",";
      }
      out.append('}');
    } else if (value instanceof Iterable<?> items) {
      out.append('[');
      String comma = "";
      for (Object item : items) {
        out.append(comma);
        write(item, out, depth + 1);
        comma = ",";
      }
      out.append(']');
    } else if (value instanceof Object[] items) write(List.of(items), out, depth);
    else if (value.getClass().isRecord()) write(parts(value), out, depth + 1);
    else quote(value.toString(), out);
  }

  private static Map<String, Object> parts(Object record) {
    Map<String, Object> parts = new LinkedHashMap<>();
    for (var component : record.getClass().getRecordComponents()) {
      try {
        Method accessor = component.getAccessor();
        accessor.setAccessible(true);
        parts.put(component.getName(), accessor.invoke(record));
      } catch (ReflectiveOperationException error) {
        throw new IllegalArgumentException(error);
      }
    }
    return parts;
  }

  private static void quote(String text, StringBuilder out) {
    out.append('"');
    for (int at = 0; at < text.length(); at++) {
      char c = text.charAt(at);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 0x20) out.append(String.format("\\u%04x", (int) c));
      else out.append(c);
    }
    out.append('"');
  }
}
