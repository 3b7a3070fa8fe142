package stores

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseLimit reads a limit as configuration writes it:
//
//	5/10m              FixedWindow(5, 10*time.Minute); also "fixed 5/10m"
//	sliding 100/1m     SlidingWindow(100, time.Minute)
//	log 10/1h          SlidingLog(10, time.Hour)
//	token 20/4s        TokenBucket(20, 4*time.Second)
//	leaky 5/1s         LeakyBucket(5, time.Second)
//	cooldown 15m       Cooldown(15*time.Minute)
//	5/10m block 1h     FixedWindow(5, 10*time.Minute).BlockFor(time.Hour)
//
// Durations are those of [time.ParseDuration], and "d" for 24 hours ("1d",
// "1d12h"); they carry no sign. Words are in lower case and separated by spaces.
// The error wraps [ErrInvalid], quotes the part that was not understood and says
// what was expected there.
func ParseLimit(s string) (Limit, error) {
	l, err := parseLimit(s)
	if err != nil {
		return Limit{}, fmt.Errorf("limit %s: %w", quote(s), err)
	}
	if err := l.Validate(); err != nil {
		return Limit{}, fmt.Errorf("limit %s: %w", quote(s), err)
	}
	return l, nil
}

func parseLimit(s string) (Limit, error) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return Limit{}, fmt.Errorf("%w: empty: want a limit such as \"5/10m\"", ErrInvalid)
	}
	var l Limit
	cooldown := false
	switch words[0] {
	case "cooldown":
		cooldown = true
		words = words[1:]
	default:
		for a, name := range algorithmNames {
			if words[0] == name {
				l.Algorithm = Algorithm(a)
				words = words[1:]
				break
			}
		}
	}
	if len(words) == 0 {
		return Limit{}, fmt.Errorf("%w: the numbers are missing: want \"5/10m\", or \"15m\" after cooldown", ErrInvalid)
	}
	amount := words[0]
	words = words[1:]
	var err error
	if cooldown {
		l.Quota = 1
		if l.Window, err = parseDuration(amount); err != nil {
			return Limit{}, err
		}
	} else {
		quota, window, ok := strings.Cut(amount, "/")
		if !ok {
			return Limit{}, fmt.Errorf("%w: %s: want quota/window such as \"5/10m\", after one of fixed, sliding, log, token, leaky, or cooldown and a duration", ErrInvalid, quote(amount))
		}
		if l.Quota, err = parseQuota(quota); err != nil {
			return Limit{}, err
		}
		if l.Window, err = parseDuration(window); err != nil {
			return Limit{}, err
		}
	}
	if len(words) == 0 {
		return l, nil
	}
	if words[0] != "block" || len(words) != 2 {
		return Limit{}, fmt.Errorf("%w: %s after the window: want nothing, or \"block\" and a duration", ErrInvalid, quote(strings.Join(words, " ")))
	}
	if l.Block, err = parseDuration(words[1]); err != nil {
		return Limit{}, err
	}
	if l.Block == 0 {
		return Limit{}, fmt.Errorf("%w: a block of 0: leave \"block\" out for none", ErrInvalid)
	}
	return l, nil
}

func parseQuota(s string) (int, error) {
	// Atoi alone would take a sign: "+5" is no quota.
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, fmt.Errorf("%w: a quota of %s: want a whole number of 1 or more", ErrInvalid, quote(s))
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%w: a quota of %s: want a whole number of 1 or more", ErrInvalid, quote(s))
	}
	return n, nil
}

// parseDuration is time.ParseDuration without a sign and with days before it.
func parseDuration(s string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, fmt.Errorf("%w: a duration of %s: want one such as \"250ms\", \"10s\", \"5m\", \"1h\" or \"1d\"", ErrInvalid, quote(s))
	}
	rest := s
	var days time.Duration
	if number, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n > uint64(maxWindow/(24*time.Hour)) {
			return bad()
		}
		days = time.Duration(n) * 24 * time.Hour
		if rest = after; rest == "" {
			return days, nil
		}
	}
	if rest == "" || rest[0] == '-' || rest[0] == '+' {
		return bad()
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d > maxWindow {
		return bad()
	}
	return days + d, nil
}

// quote bounds what an error repeats of a text that may be anybody's.
func quote(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	return strconv.Quote(s)
}

// String returns l as [ParseLimit] reads it, in its shortest form: "5/10m",
// "sliding 100/1m", "token 20/4s block 1h". Parts of a limit that is not valid are
// written as they are, and then ParseLimit need not take them back.
func (l Limit) String() string {
	b := make([]byte, 0, 48)
	if l.Algorithm != Fixed {
		b = append(b, l.Algorithm.String()...)
		b = append(b, ' ')
	}
	b = strconv.AppendInt(b, int64(l.Quota), 10)
	b = append(b, '/')
	b = appendDuration(b, l.Window)
	if l.Block != 0 {
		b = append(b, " block "...)
		b = appendDuration(b, l.Block)
	}
	return string(b)
}

// appendDuration writes d without the zero units that Duration.String puts at its
// end: "10m" for "10m0s".
func appendDuration(b []byte, d time.Duration) []byte {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return append(b, s...)
}

// MarshalText is String for valid limits and an error that wraps [ErrInvalid] for
// others.
func (l Limit) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalText is ParseLimit.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}
