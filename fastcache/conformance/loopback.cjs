// Loaded into the suite's origin server, which would listen on all addresses:
// keeps it on the loopback address.
const { Server } = require('node:net')

const listen = Server.prototype.listen
Server.prototype.listen = function (port) {
  return listen.call(this, { port, host: '127.0.0.1' })
}
