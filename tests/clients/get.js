// get.js KIND URL: prints the page, by one of the ways that programs in Node.js have.
'use strict';
const https = require('https');

function fail(error) {
  console.error(error.cause || error);
  process.exitCode = 1;
}

const kinds = {
  fetch: (url) => fetch(url).then((answer) => answer.text()).then((text) => process.stdout.write(text)).catch(fail),
  https: (url) => https.get(url, (answer) => answer.pipe(process.stdout)).on('error', fail),
  ws: (url) => {
    const WebSocket = require('ws');
    const socket = new WebSocket(url);
    socket.on('open', () => socket.send('through a socket'));
    socket.on('message', (data) => {
      console.log(String(data));
      socket.close();
    });
    socket.on('error', fail);
  },
};
kinds[process.argv[2]](process.argv[3]);
