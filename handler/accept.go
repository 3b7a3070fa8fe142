package handler

import "strings"

// prefersHTML tells whether an Accept field (RFC 9110 section 12.5.1; several lines
// are one list) asks for text/html rather than for JSON: by a higher quality, or
// by the same quality in a more specific range, as browsers do whose list ends in
// "*/*". In doubt the answer is JSON. It does not allocate, and what it can't
// read it passes over.
func prefersHTML(accept []string) bool {
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*" {
		return false // what programs send
	}
	var page, json preference
	for _, line := range accept {
		for line != "" {
			var element string
			element, line = cutList(line)
			weigh(element, &page, &json)
		}
	}
	return page.quality > 0 && (page.quality > json.quality ||
		page.quality == json.quality && page.specific > json.specific)
}

// preference is what the most specific range says of a media type.
type preference struct {
	quality  int // thousandths
	specific int // 0: not mentioned, 1: "*/*", 2: "type/*", 3: itself
}

func (p *preference) note(specific, quality int) {
	if specific > p.specific || specific == p.specific && quality > p.quality {
		p.specific, p.quality = specific, quality
	}
}

func weigh(element string, page, json *preference) {
	media, parameters, _ := strings.Cut(element, ";")
	quality, ok := parseQuality(parameters)
	if !ok {
		return
	}
	switch media = strings.Trim(media, " \t"); {
	case strings.EqualFold(media, "text/html"):
		page.note(3, quality)
	case strings.EqualFold(media, "application/problem+json"), strings.EqualFold(media, "application/json"):
		json.note(3, quality)
	case strings.EqualFold(media, "text/*"):
		page.note(2, quality)
	case strings.EqualFold(media, "application/*"):
		json.note(2, quality)
	case media == "*/*":
		page.note(1, quality)
		json.note(1, quality)
	}
}

// cutList cuts the first element off a comma-separated list. A comma within a
// quoted string parts nothing.
func cutList(list string) (element, rest string) {
	inQuotes := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"':
			inQuotes = !inQuotes
		case c == '\\' && inQuotes:
			i++
		case c == ',' && !inQuotes:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}

// parseQuality finds the weight among a media range's parameters, in thousandths;
// none is 1000.
func parseQuality(parameters string) (int, bool) {
	for parameters != "" {
		var p string
		p, parameters, _ = strings.Cut(parameters, ";")
		name, value, ok := strings.Cut(p, "=")
		if ok && strings.EqualFold(strings.Trim(name, " \t"), "q") {
			return parseWeight(strings.Trim(value, " \t"))
		}
	}
	return 1000, true
}

// parseWeight reads a qvalue: "0", "0.5", "1.000"; at most three decimals.
func parseWeight(s string) (int, bool) {
	if s == "" || len(s) > 5 || s[0] != '0' && s[0] != '1' || len(s) > 1 && s[1] != '.' {
		return 0, false
	}
	weight := int(s[0]-'0') * 1000
	place := 100
	for i := 2; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		weight += int(s[i]-'0') * place
		place /= 10
	}
	return weight, weight <= 1000
}
