import type { Static } from 'typebox';
import { defaultLimits, type Limits } from './limits.ts';
import type { Operation } from './operation.ts';
import { authenticationOperations } from './operations/authentication.ts';
import { organizationOperations } from './operations/organizations.ts';
import { publishingOperations } from './operations/publishing.ts';
import { queryOperations } from './operations/query.ts';
import { serviceOperations } from './operations/service.ts';
import { stateOperations } from './operations/state.ts';
import { taskOperations } from './operations/tasks.ts';
import { topicOperations } from './operations/topics.ts';
import { buildTypes, type Types } from './types/index.ts';

/** The whole interface for the given limits: every operation by id, and every named type. */
export function buildContract(limits: Limits = defaultLimits) {
  const types = buildTypes(limits);
  return {
    limits,
    types,
    operations: {
      ...authenticationOperations(types),
      ...organizationOperations(types),
      ...taskOperations(types, limits),
      ...topicOperations(types, limits),
      ...publishingOperations(types, limits),
      ...stateOperations(types, limits),
      ...queryOperations(types, limits),
      ...serviceOperations(),
    },
  };
}

/** A value of a named type of the interface. */
export type NamedType<Name extends keyof Types> = Static<Types[Name]>;

export type Contract = ReturnType<typeof buildContract>;
export type Operations = Contract['operations'];
export type OperationId = keyof Operations;

/** The operations of a contract as a list, in the order of the documentation. */
export function listOperations(contract: Contract): readonly Operation<OperationId>[] {
  return Object.values(contract.operations);
}

export { applicableProblems, isProblemCode, problemCodes } from './applicable-problems.ts';
export { groupDescriptions } from './groups.ts';
export { defaultLimits, type LimitName, type Limits, limitSetting } from './limits.ts';
export * as names from './names.ts';
export type { OpenApiDocument } from './openapi/document.ts';
export { problemExample } from './openapi/problem-responses.ts';
export { type ContractDescription, openApiDocument, openApiPath } from './openapi.ts';
export {
  type Access,
  type AnswerOf,
  type BodyOf,
  type HeadersOf,
  type Method,
  type Operation,
  type OperationDefinition,
  type OperationGroup,
  operationGroups,
  type PathOf,
  type QueryOf,
  type Role,
  roleIncludes,
  roles,
  type StreamedBody,
} from './operation.ts';
export { type ProblemCode, type ProblemDefinition, problems, problemType } from './problems.ts';
export { type RateLimitLevelName, rateLimitLevels } from './types/organizations.ts';
