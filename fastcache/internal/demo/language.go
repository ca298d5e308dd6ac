package demo

import (
	"net/http"
	"strconv"
	"strings"
)

// languages that the welcome page is written in; the first is for everybody else.
var languages = []string{"en", "de", "fr"}

// chooseLanguage picks the language that the client likes best (RFC 9110 section
// 12.5.4). Among equals it is the one that the client names first.
func chooseLanguage(h http.Header) string {
	best, bestWeight := languages[0], 0.0
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Language"), ","), ",") {
		tag, params, _ := strings.Cut(part, ";")
		weight := languageWeight(params)
		language, ok := ours(strings.TrimSpace(tag))
		if ok && weight > bestWeight {
			best, bestWeight = language, weight
		}
	}
	return best
}

// ours maps a language range, such as de-CH or *, to a language of ours.
func ours(tag string) (string, bool) {
	primary, _, _ := strings.Cut(tag, "-")
	for _, l := range languages {
		if strings.EqualFold(primary, l) || primary == "*" {
			return l, true
		}
	}
	return "", false
}

// languageWeight reads q=0.5: 1 when it is missing, 0 (never) when it is nonsense.
func languageWeight(params string) float64 {
	name, value, found := strings.Cut(strings.TrimSpace(params), "=")
	if !found || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !(q >= 0 && q <= 1) { // NaN is out too
		return 0
	}
	return q
}

// greeting is the text of the welcome page.
type greeting struct {
	Language string
	Title    string
	Text     string
	Hours    string
	Other    string
}

var greetings = map[string]greeting{
	"en": {
		"en", "Good morning",
		"The oven is lit at three, and the first rye is on the shelf by six. Come in, it is warm here.",
		"Tuesday to Saturday, 6 am to 2 pm",
		"This page comes in English, German and French. One URL, three stored answers: the response says Vary: Accept-Language.",
	},
	"de": {
		"de", "Guten Morgen",
		"Um drei wird der Ofen geheizt, um sechs liegt das erste Roggenbrot im Regal. Kommen Sie herein, hier ist es warm.",
		"Dienstag bis Samstag, 6 bis 14 Uhr",
		"Diese Seite gibt es auf Englisch, Deutsch und Französisch. Eine URL, drei gespeicherte Antworten: In der Antwort steht Vary: Accept-Language.",
	},
	"fr": {
		"fr", "Bonjour",
		"Le four est allumé à trois heures et le premier pain de seigle attend en rayon à six heures. Entrez, il fait chaud ici.",
		"Du mardi au samedi, de 6 h à 14 h",
		"Cette page existe en anglais, en allemand et en français. Une URL, trois réponses en cache : la réponse porte Vary: Accept-Language.",
	},
}
