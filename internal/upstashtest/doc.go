// Package upstashtest holds test doubles of Upstash Redis over REST.
//
//   - [New], [NewReal] and [NewBubble] give a server with Upstash's manners over an
//     embedded Redis, over a real redis-server, and inside a testing/synctest bubble.
//     It records every command and can be told to fail. It takes scripts that begin with
//     Upstash's flag, unless it is told to be a stock server in this.
//   - [NewScripted] gives a server on a bare TCP port that misbehaves in whatever way
//     it is told to: it hangs, trickles, cuts, lies, resets.
//   - The program in restdouble serves the first kind to other programs.
//
// What "Upstash's manners" are is written in its REST API documentation
// (https://upstash.com/docs/redis/features/restapi): POST / takes one command and
// fails with 400, POST /pipeline takes several and puts each failure into its slot of
// a 200, POST /multi-exec is a transaction, a wrong token is a 401 that says
// WRONGPASS, and a request that fails as a whole is one object {"error": ...}.
//
// No test of the kit talks to Upstash itself.
package upstashtest
