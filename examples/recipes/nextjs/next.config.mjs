/** The setting of create-next-app: pages are built once, except for parts that wait for a request. */
export default { cacheComponents: true };
