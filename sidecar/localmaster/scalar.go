package localmaster

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// The implicit types of YAML 1.1 as PyYAML resolves them (yaml/resolver.py), which is not what YAML libraries of
// today do: on and yes are true, 1:30 is 90, 1_000 is a number, and 1e5 is text.
var (
	yamlBool = map[string]bool{
		"yes": true, "Yes": true, "YES": true, "true": true, "True": true, "TRUE": true, "on": true, "On": true, "ON": true,
		"no": false, "No": false, "NO": false, "false": false, "False": false, "FALSE": false, "off": false, "Off": false,
		"OFF": false,
	}
	yamlNull = map[string]bool{"": true, "~": true, "null": true, "Null": true, "NULL": true}
	yamlInt  = regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+` +
		`|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	yamlFloat = regexp.MustCompile(`^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?` +
		`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

// plainScalar gives an unquoted scalar its value: nil, bool, int64, float64 or string. Timestamps stay text
// (salt/utils/yamlloader.py constructs them as scalars).
func plainScalar(text string) any {
	if yamlNull[text] {
		return nil
	}
	if b, ok := yamlBool[text]; ok {
		return b
	}
	if !strings.ContainsRune("+-.0123456789", rune(text[0])) { // no number begins otherwise
		return text
	}
	if yamlInt.MatchString(text) {
		if v, ok := parseYAMLInt(text); ok {
			return v
		}
	}
	if yamlFloat.MatchString(text) {
		if v, ok := parseYAMLFloat(text); ok {
			return v
		}
	}
	return text
}

// parseYAMLInt follows SafeConstructor.construct_yaml_int, after Salt's own construct_scalar has taken leading zeros
// off, so that 0755 is 755. Numbers beyond 64 bits become text of their digits.
func parseYAMLInt(text string) (any, bool) {
	if text != "0" && strings.HasPrefix(text, "0") && !strings.HasPrefix(text, "0b") && !strings.HasPrefix(text, "0x") {
		if text = strings.TrimLeft(text, "0"); text == "" {
			text = "0"
		}
	}
	text = strings.ReplaceAll(text, "_", "")
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = strings.TrimPrefix(text[:1], "+"), text[1:]
	}
	n := new(big.Int)
	ok := true
	switch {
	case strings.HasPrefix(text, "0b"):
		_, ok = n.SetString(text[2:], 2)
	case strings.HasPrefix(text, "0x"):
		_, ok = n.SetString(text[2:], 16)
	case strings.Contains(text, ":"):
		ok = addSexagesimal(n, text)
	case len(text) > 1 && text[0] == '0':
		_, ok = n.SetString(text, 8)
	default:
		_, ok = n.SetString(text, 10)
	}
	if !ok {
		return nil, false
	}
	if sign == "-" {
		n.Neg(n)
	}
	if n.IsInt64() {
		return n.Int64(), true
	}
	return n.String(), true
}

func addSexagesimal(n *big.Int, text string) bool {
	for _, digits := range strings.Split(text, ":") {
		d, ok := new(big.Int).SetString(digits, 10)
		if !ok {
			return false
		}
		n.Mul(n, big.NewInt(60)).Add(n, d)
	}
	return true
}

func parseYAMLFloat(text string) (any, bool) {
	text = strings.ToLower(strings.ReplaceAll(text, "_", ""))
	sign := 1.0
	if text[0] == '-' || text[0] == '+' {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	switch {
	case text == ".inf":
		return math.Inf(int(sign)), true
	case text == ".nan":
		return math.NaN(), true
	case strings.Contains(text, ":"):
		var sum float64
		for _, part := range strings.Split(text, ":") {
			v, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return nil, false
			}
			sum = sum*60 + v
		}
		return sign * sum, true
	}
	v, err := strconv.ParseFloat(text, 64)
	return sign * v, err == nil
}
