import type { Compilable, CompiledQuery } from 'kysely';
import type { Queries } from './state-store.ts';

/**
 * A query that is put together once for each database and from then on only given its values, in the order
 * in which they stand in it. Putting a query together takes longer than all the rest of running it, which
 * matters for the two that nearly every request about state runs.
 */
export function prepared<Row>(
  build: (queries: Queries) => Compilable<Row>,
): (queries: Queries, values: readonly unknown[]) => Promise<Row[]> {
  const compiled = new WeakMap<Queries, CompiledQuery<Row>>();
  return async (queries, values) => {
    let query = compiled.get(queries);
    if (query === undefined) {
      query = build(queries).compile();
      compiled.set(queries, query);
    }
    if (values.length !== query.parameters.length) throw new Error('a query got too many or too few values');
    return (await queries.executeQuery<Row>({ ...query, parameters: values })).rows;
  };
}
