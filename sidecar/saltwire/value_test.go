package saltwire

import (
	"math"
	"testing"

	"saltclusterd/integration/check"
)

// Names are what Python's str() says (3.11).
func TestValues(t *testing.T) {
	falsy := map[string]bool{
		"nothing": true, "None": true, "false": true, "zero": true, "zero in many bytes": true, "a float of zero": true,
		"zero from below": true, "no text": true,
		"a list of nothing": true, "a long list": true, "a map of nothing": true,
	}
	for _, c := range []struct {
		what  string
		value string
		form  Form
		name  string
		named bool
	}{
		{"nothing", "", FormAbsent, "", false},
		{"None", "\xc0", FormNone, "None", true},
		{"true", "\xc3", FormBool, "True", true},
		{"false", "\xc2", FormBool, "False", true},
		{"a small number", "\x07", FormInt, "7", true},
		{"zero", "\x00", FormInt, "0", true},
		{"zero in many bytes", "\xd3\x00\x00\x00\x00\x00\x00\x00\x00", FormInt, "0", true},
		{"a float of zero", "\xca\x00\x00\x00\x00", FormFloat, "0.0", true},
		{"zero from below", "\xcb\x80\x00\x00\x00\x00\x00\x00\x00", FormFloat, "-0.0", true},
		{"one below zero", "\xff", FormInt, "-1", true},
		{"a large number", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", FormInt, "18446744073709551615", true},
		{"one far below zero", "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", FormInt, "-9223372036854775808", true},
		{"a float", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", FormFloat, "1.5", true},
		{"a whole float", "\xcb\x40\x00\x00\x00\x00\x00\x00\x00", FormFloat, "2.0", true},
		{"a short float", "\xca\x3f\xc0\x00\x00", FormFloat, "1.5", true},
		{"a short float that is none of ten", "\xca\x3d\xcc\xcc\xcd", FormFloat, "0.10000000149011612", true},
		{"no number", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", FormFloat, "nan", true},
		{"more than any number", "\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", FormFloat, "inf", true},
		{"less than any number", "\xca\xff\x80\x00\x00", FormFloat, "-inf", true},
		{"raw", "\xa1x", FormText, "x", true},
		{"str8", "\xd9\x01x", FormText, "x", true},
		{"bin", "\xc4\x01x", FormText, "x", true},
		{"no text", "\xa0", FormText, "", true},
		{"a list", "\x91\xa1x", FormList, "", false},
		{"a list of nothing", "\x90", FormList, "", false},
		{"a long list", "\xdc\x00\x00", FormList, "", false},
		{"a map", "\x81\xa1x\xc0", FormMap, "", false},
		{"a map of nothing", "\x80", FormMap, "", false},
		{"a datetime", "\xd4\x4ex", FormObject, "", false},
		{"a constant", "\xc7\x01\x4fx", FormObject, "", false},
	} {
		v := Value(c.value)
		check.Equal(t, v.Form(), c.form, c.what, "form")
		if name, ok := v.Name(); name != c.name || ok != c.named {
			t.Errorf("%s: is called %q, %t", c.what, name, ok)
		}
		if b, ok := v.Text(); ok != (c.form == FormText) || ok && string(b) != c.name {
			t.Errorf("%s: text %q, %t", c.what, b, ok)
		}
		check.Equal(t, v.Missing(), (c.form == FormAbsent || c.form == FormNone), c.what, "missing")
		check.Equal(t, v.True(), !falsy[c.what], c.what, "is true")
		if v.Container() != (c.form == FormList || c.form == FormMap || c.form == FormObject) {
			t.Errorf("%s: a container: %t", c.what, v.Container())
		}
		check.Equal(t, v.Empty(), (c.value == "\x90" || c.value == "\x80"), c.what, "empty")
	}
}

func TestPythonFloat(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", math.Copysign(0, -1): "-0.0", 1: "1.0", -2.5: "-2.5", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e+16",
		1e-4: "0.0001", 1e-5: "1e-05",
		1.5e300: "1.5e+300", 123456789.125: "123456789.125",
	} {
		check.Equal(t, PythonFloat(f), want)
	}
}
