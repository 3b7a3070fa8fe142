package upstashtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxRequest is Upstash's bound on a request of the small plans.
const maxRequest = 10 << 20

// unserved are commands that need a connection of their own, which REST has not, or
// that belong to the operator of the server.
var unserved = map[string]bool{
	"AUTH": true, "SELECT": true, "HELLO": true, "QUIT": true, "MULTI": true, "EXEC": true,
	"DISCARD": true, "WATCH": true, "SUBSCRIBE": true, "PSUBSCRIBE": true, "MONITOR": true,
	"BLPOP": true, "BRPOP": true, "BLMOVE": true, "BZPOPMIN": true, "BZPOPMAX": true,
	"CONFIG": true, "SHUTDOWN": true, "DEBUG": true, "REPLICAOF": true,
}

var errParse = errors.New("ERR failed to parse the request")

// encoding says how strings are written: plain JSON, or base64 on demand.
type encoding bool

// value turns a Redis reply into what JSON shows of it.
func (b64 encoding) value(reply any) any {
	switch v := reply.(type) {
	case bulk:
		return b64.text(string(v))
	case status:
		return b64.text(string(v))
	case failure:
		return string(v)
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = b64.value(v[i])
		}
		return items
	}
	return reply
}

func (b64 encoding) text(s string) string {
	if b64 && s != "OK" {
		return base64.StdEncoding.EncodeToString([]byte(s))
	}
	return s
}

// slot is one answer: {"result": ...} or {"error": ...}.
func (b64 encoding) slot(reply any) map[string]any {
	if f, is := reply.(failure); is {
		return map[string]any{"error": string(f)}
	}
	return map[string]any{"result": b64.value(reply)}
}

// ServeHTTP answers as Upstash does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, code := s.answer(r)
	if s.spoil(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Upstash-Sync-Token", fmt.Sprintf("double-%d", s.Requests()))
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // the values are ours
	}
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

func refusal(text string) map[string]any { return map[string]any{"error": text} }

func (s *Server) answer(r *http.Request) (any, int) {
	s.count()
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut:
	default:
		return refusal("ERR method not allowed"), http.StatusMethodNotAllowed
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = r.URL.Query().Get("_token")
	}
	if token != s.Token {
		return refusal("WRONGPASS invalid or missing auth token"), http.StatusUnauthorized
	}
	b64 := encoding(false)
	switch enc := r.Header.Get("Upstash-Encoding"); enc {
	case "":
	case "base64":
		b64 = true
	default:
		return refusal("ERR unsupported encoding"), http.StatusBadRequest
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	if err != nil || len(body) > maxRequest {
		return refusal("ERR max request size exceeded"), http.StatusBadRequest
	}
	switch r.URL.Path {
	case "/pipeline", "/multi-exec":
		commands, err := parseCommands(body)
		if err != nil {
			return refusal(err.Error()), http.StatusBadRequest
		}
		if r.URL.Path == "/multi-exec" {
			return s.transaction(b64, commands)
		}
		return s.pipeline(b64, commands)
	}
	command, err := parsePath(r.URL, body)
	if r.URL.Path == "/" || r.URL.Path == "" {
		command, err = parseCommand(body)
	}
	if err != nil {
		return refusal(err.Error()), http.StatusBadRequest
	}
	replies, err := s.run([][]string{command})
	if err != nil {
		return refusal("ERR the database can't be reached"), http.StatusInternalServerError
	}
	slot := b64.slot(replies[0])
	if _, failed := slot["error"]; failed {
		return slot, http.StatusBadRequest
	}
	return slot, http.StatusOK
}

func (s *Server) pipeline(b64 encoding, commands [][]string) (any, int) {
	replies, err := s.run(commands)
	if err != nil {
		return refusal("ERR the database can't be reached"), http.StatusInternalServerError
	}
	slots := make([]map[string]any, len(replies))
	for i := range replies {
		slots[i] = b64.slot(replies[i])
	}
	return slots, http.StatusOK
}

func (s *Server) transaction(b64 encoding, commands [][]string) (any, int) {
	for _, c := range commands {
		if f, refused := s.refuse(c); refused {
			return refusal("EXECABORT " + string(f)), http.StatusBadRequest
		}
	}
	s.record(commands)
	wrapped := [][]string{{"MULTI"}}
	for _, c := range commands {
		wrapped = append(wrapped, s.flagged.rewrite(c))
	}
	wrapped = append(wrapped, []string{"EXEC"})
	replies, err := s.redis.do(wrapped...)
	if err != nil {
		return refusal("ERR the database can't be reached"), http.StatusInternalServerError
	}
	items, ok := replies[len(replies)-1].([]any)
	if !ok {
		return refusal(fmt.Sprint(replies[len(replies)-1])), http.StatusBadRequest
	}
	slots := make([]map[string]any, len(items))
	for i := range items {
		slots[i] = b64.slot(items[i])
	}
	return slots, http.StatusOK
}

// refuse is what a command meets before it reaches the database.
func (s *Server) refuse(command []string) (failure, bool) {
	name := strings.ToUpper(command[0])
	if text, ok := s.slotError(name); ok {
		return failure(text), true
	}
	if unserved[name] {
		return failure("ERR Command is not available: '" + name + "'"), true
	}
	return "", false
}

// run executes what is not refused, in order and on one connection.
func (s *Server) run(commands [][]string) ([]any, error) {
	s.record(commands)
	replies := make([]any, len(commands))
	var send [][]string
	var where []int
	for i, c := range commands {
		if f, refused := s.refuse(c); refused {
			replies[i] = f
			continue
		}
		send, where = append(send, s.flagged.rewrite(c)), append(where, i)
	}
	got, err := s.redis.do(send...)
	if err != nil {
		return nil, err
	}
	for i, reply := range got {
		replies[where[i]] = reply
	}
	return replies, nil
}

func parseCommands(body []byte) ([][]string, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil || len(raw) == 0 {
		return nil, errParse
	}
	commands := make([][]string, len(raw))
	for i := range raw {
		var err error
		if commands[i], err = parseCommand(raw[i]); err != nil {
			return nil, err
		}
	}
	return commands, nil
}

// parseCommand reads ["CMD", "a1", 2]: strings, and numbers as they are written.
func parseCommand(body []byte) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var args []any
	if err := d.Decode(&args); err != nil || len(args) == 0 {
		return nil, errParse
	}
	command := make([]string, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			command[i] = v
		case json.Number, bool:
			command[i] = fmt.Sprint(v)
		default:
			return nil, errParse
		}
	}
	return command, nil
}

// parsePath reads /CMD/a1/a2?EX=100, with a body as the last argument before the query.
func parsePath(u *url.URL, body []byte) ([]string, error) {
	var command []string
	for _, part := range strings.Split(strings.Trim(u.EscapedPath(), "/"), "/") {
		arg, err := url.PathUnescape(part)
		if err != nil {
			return nil, errParse
		}
		command = append(command, arg)
	}
	if len(body) > 0 {
		command = append(command, string(body))
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name == "" || name == "_token" {
			continue
		}
		command = append(command, name)
		if value != "" {
			command = append(command, value)
		}
	}
	return command, nil
}
