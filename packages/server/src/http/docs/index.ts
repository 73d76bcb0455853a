/** The documentation that the server serves: pages made from the contract, without scripts or other files. */
export { docsPage } from './docs-page.ts';
export { errorCodeFromPath, errorIndexPage, errorPage } from './error-pages.ts';
export { docsContentSecurityPolicy } from './style.ts';
