package upstash

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSHA: EVALSHA asks for the text that EVAL brings. With a wrong sum each decision
// would take two exchanges, and nobody would notice.
func TestSHA(t *testing.T) {
	for _, f := range []form{onUpstash, elsewhere} {
		sum := sha1.Sum([]byte(f.text()))
		require.Equal(t, hex.EncodeToString(sum[:]), f.sha)
	}
}
