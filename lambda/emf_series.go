package lambda

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// What a series counts, in the order of its line.
const (
	countRequests = iota
	countAllowed
	countRefused
	countUnavailable
	countHungUp
	countNearLimit
	countLocal
	countRemembered
	countUndecided
	counters
)

var countNames = [counters]string{"Requests", "Allowed", "Refused", "Unavailable", "HungUp", "NearLimit", "Local", "Remembered", "Undecided"}

const (
	// lineEvery is in milliseconds the time in which one line is earned: what CloudWatch
	// keeps of a metric is a minute's.
	lineEvery = int64(time.Minute / time.Millisecond)
	// lineBurst is for a function with little to do, which shows at once what it does.
	lineBurst = 20
	// samples of the latency, and the longest, stay below the 100 values that the format
	// allows, and keep a line short.
	samples = 32
)

// series is what is counted between two lines that have one set of dimensions.
type series struct {
	policy  string // quoted; "" for all requests
	counts  [counters]int64
	pending bool  // something was counted since the last line
	latest  int64 // when, in milliseconds of the epoch
	paid    int64 // until when lines are paid for, as a bucket's arrival time

	latency [samples]time.Duration // of seen values, each as likely as another
	seen    uint64
	longest time.Duration
}

// begin is called before something is counted at now. What was counted before a quiet
// minute has a line of its own: as a part of now's it would show at the wrong time.
func (s *series) begin(lines [][]byte, function string, now int64) [][]byte {
	if now-s.latest >= lineEvery {
		lines = s.flush(lines, function)
	}
	s.latest, s.pending = now, true
	return lines
}

// end is called after something was counted, and appends the line if one may be written.
func (s *series) end(lines [][]byte, function string, now int64) [][]byte {
	// A clock that was set back must not make the series silent for long.
	paid := min(max(s.paid, now), now+lineBurst*lineEvery)
	if s.paid = paid; paid-now > (lineBurst-1)*lineEvery {
		return lines
	}
	s.paid = paid + lineEvery
	return s.flush(lines, function)
}

// flush appends the line of what was counted, if anything was.
func (s *series) flush(lines [][]byte, function string) [][]byte {
	if !s.pending {
		return lines
	}
	lines = append(lines, s.line(function))
	*s = series{policy: s.policy, latest: s.latest, paid: s.paid}
	return lines
}

// sample keeps a fair choice of latencies (Vitter, "Random Sampling with a Reservoir",
// algorithm R), so that percentiles are those of all requests.
func (s *series) sample(d time.Duration) {
	if s.longest = max(s.longest, d); s.seen < samples {
		s.latency[s.seen] = d
	} else if i := rand.Uint64N(s.seen + 1); i < samples {
		s.latency[i] = d
	}
	s.seen++
}

// line writes the series as
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
// has it.
func (s *series) line(function string) []byte {
	b := make([]byte, 0, 768)
	b = append(b, `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, s.latest, 10)
	b = append(b, `,"CloudWatchMetrics":[{"Namespace":"Sallyport","Dimensions":[["FunctionName"`...)
	if s.policy != "" {
		b = append(b, `,"Policy"`...)
	}
	b = append(b, `]],"Metrics":[`...)
	for i, n := range s.counts {
		if n > 0 {
			b = append(b, `{"Name":"`...)
			b = append(b, countNames[i]...)
			b = append(b, `","Unit":"Count"},`...)
		}
	}
	if s.seen > 0 {
		b = append(b, `{"Name":"StoreLatency","Unit":"Milliseconds"},`...)
	}
	b = append(b[:len(b)-1], `]}]},"FunctionName":`...)
	b = append(b, function...)
	if s.policy != "" {
		b = append(b, `,"Policy":`...)
		b = append(b, s.policy...)
	}
	for i, n := range s.counts {
		if n > 0 {
			b = append(b, `,"`...)
			b = append(b, countNames[i]...)
			b = append(b, `":`...)
			b = strconv.AppendInt(b, n, 10)
		}
	}
	if s.seen > 0 {
		b = append(b, `,"StoreLatency":[`...)
		for _, d := range s.latency[:min(s.seen, samples)] {
			b = appendMilliseconds(b, d)
		}
		if s.seen > samples {
			b = appendMilliseconds(b, s.longest)
		}
		b = append(b[:len(b)-1], ']')
	}
	return append(b, '}', '\n')
}

func appendMilliseconds(b []byte, d time.Duration) []byte {
	return append(strconv.AppendFloat(b, float64(d.Microseconds())/1000, 'f', -1, 64), ',')
}

// quoted writes a dimension's value as a JSON string. CloudWatch takes printable ASCII
// that does not begin with a colon.
func quoted(s string) string {
	b := []byte{'"'}
	for i := 0; i < len(s) && i < 200; i++ {
		switch c := s[i]; {
		case c < ' ', c > '~', c == ':' && i == 0:
			b = append(b, '?')
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
