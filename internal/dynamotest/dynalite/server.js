// Runs dynalite with the two things that it lacks and the kit needs: the old item
// in the error of a failed condition, and UpdateTimeToLive, which it only has to
// accept. Prints the port that it listens on, and ends with its standard input, so
// that no process outlives the test that started it.
'use strict'

const db = require('dynalite/db')
for (const action of ['updateItem', 'putItem', 'deleteItem']) {
  const validation = require('dynalite/validations/' + action)
  validation.types.ReturnValuesOnConditionCheckFailure = { type: 'String', enum: ['ALL_OLD', 'NONE'] }
}
const checkConditional = db.checkConditional
db.checkConditional = (data, old) => {
  const err = checkConditional(data, old)
  if (err && old && data.ReturnValuesOnConditionCheckFailure === 'ALL_OLD') err.body.Item = old
  return err
}

const server = require('dynalite')({ createTableMs: 0, deleteTableMs: 0 })
const [serve] = server.listeners('request')
server.removeAllListeners('request')
server.on('request', (req, res) => {
  const target = req.headers['x-amz-target'] || ''
  if (!target.endsWith('.UpdateTimeToLive')) return serve(req, res)
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    const { TimeToLiveSpecification } = JSON.parse(Buffer.concat(chunks).toString())
    res.setHeader('Content-Type', 'application/x-amz-json-1.0')
    res.end(JSON.stringify({ TimeToLiveSpecification }))
  })
})

server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0)).resume()
