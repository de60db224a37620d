// Loaded before mem0's tests, which always call https://api.mem0.ai: sends their requests to our gateway.
const { MEM0_BASE_URL } = process.env;
const sent = globalThis.fetch;
globalThis.fetch = (url, options) => sent(String(url).replace("https://api.mem0.ai", MEM0_BASE_URL), options);
