/** As create-next-app writes it: pages are built once, except for what waits for a request. */
export default { cacheComponents: true };
