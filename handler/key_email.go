package handler

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalEmail brings the spellings of one mailbox that any look-up takes for one to
// one form: no space around it, NFC (Unicode Standard Annex 15), lower case. It is
// idempotent. What is no UTF-8 is only trimmed and lowered in its ASCII letters,
// because replacing the bytes that can't be read would make different texts alike.
func normalEmail(s string) string {
	s = strings.TrimSpace(s)
	if plain(s) {
		return s
	}
	if !utf8.ValidString(s) {
		b := []byte(s)
		for i, c := range b {
			if c >= 'A' && c <= 'Z' {
				b[i] = c + 'a' - 'A'
			}
		}
		return string(b)
	}
	// Lowering a composed letter may leave a decomposed one, and the other way round.
	return norm.NFC.String(strings.ToLower(norm.NFC.String(s)))
}

// plain tells whether s is ASCII without capitals, which is in its form already.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}
