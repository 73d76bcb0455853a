/** A service with a task that loops for ever, to be killed: prints the mark of the task once it runs. */
import { call, openSite } from './execution.fixture.ts';

const sandbox = process.argv[2] === 'bubblewrap' ? 'bubblewrap' : 'none';
const site = await openSite({ sandbox });
const pool = await site.pool(
  { 'index.js': 'exports.handler = () => { console.log("looping"); for (;;); };' },
  { timeoutSec: 900, memoryMb: Number(process.argv[3]) },
);
void call(pool, {}, { onLine: ({ text }) => console.log(text) });
