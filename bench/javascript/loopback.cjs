// Loaded before a server that listens on all addresses (node -r): it then listens on this
// machine's own, as runnel does, and so nobody else reaches a server that a benchmark starts.
const net = require("node:net");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (first, ...rest) {
  const host = "127.0.0.1";
  if (first !== null && typeof first === "object") {
    return listen.call(this, { ...first, host }, ...rest);
  }
  // listen(port, [host], [backlog], [callback]): what names no host stays.
  return listen.call(this, first, host, ...rest.filter((v) => typeof v !== "string"));
};
