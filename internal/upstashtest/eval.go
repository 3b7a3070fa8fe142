package upstashtest

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync"
)

// keyLocking is the flag in a script's first line that Upstash knows and Redis does not
// (https://upstash.com/docs/redis/features/key-locking).
const keyLocking = "#!lua flags=allow-key-locking\n"

// flagged lets the Redis behind a double take scripts that begin with the flag.
type flagged struct {
	mu    sync.Mutex
	stock bool
	shas  map[string]string // of scripts with the flag, to that without
}

// SetStock has scripts' flags reach the Redis behind the double, which refuses them, as
// servers do that are Upstash's in nothing but the REST API.
func (s *Server) SetStock(stock bool) {
	s.flagged.mu.Lock()
	defer s.flagged.mu.Unlock()
	s.flagged.stock = stock
}

// rewrite takes the flag out of a command.
func (f *flagged) rewrite(command []string) []string {
	if len(command) < 2 {
		return command
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stock {
		return command
	}
	arg := command[1]
	switch strings.ToUpper(command[0]) {
	case "EVAL", "EVAL_RO":
		text, has := strings.CutPrefix(arg, keyLocking)
		if !has {
			return command
		}
		if f.shas == nil {
			f.shas = make(map[string]string)
		}
		f.shas[sha(arg)] = sha(text)
		arg = text
	case "EVALSHA", "EVALSHA_RO":
		plain, has := f.shas[strings.ToLower(arg)]
		if !has {
			return command
		}
		arg = plain
	default:
		return command
	}
	return append([]string{command[0], arg}, command[2:]...)
}

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
