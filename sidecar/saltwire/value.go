package saltwire

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// Value is what stands in a field of a load, as msgpack that was checked when the load was read; nil when the field is
// not there. Rules ask it what a master's Python will hold, so that values that are not text are judged here and
// nowhere else.
type Value []byte

// Form is what a master's Python makes of a value.
type Form uint8

// The forms.
const (
	FormAbsent Form = iota
	FormNone
	FormBool
	FormInt
	FormFloat
	FormText // str or bytes, whichever way it was packed
	FormList
	FormMap
	FormObject // an extension type of Salt's: a datetime, a constant
)

var forms = [...]Form{
	kindNil: FormNone, kindBool: FormBool, kindInt: FormInt, kindFloat: FormFloat, kindBytes: FormText,
	kindArray: FormList, kindMap: FormMap,
	kindExt: FormObject,
}

// Form says what kind of thing it is.
func (v Value) Form() Form {
	if len(v) == 0 {
		return FormAbsent
	}
	h, _ := classifyByte(v[0])
	return forms[h.kind]
}

// Missing says whether there is none, or None.
func (v Value) Missing() bool { return v.Form() <= FormNone }

// Container says whether it may have text in it without being text.
func (v Value) Container() bool { return v.Form() >= FormList }

// Empty says whether it is a container of nothing, as minions write one.
func (v Value) Empty() bool { return v.Container() && len(v) == 1 }

// True says whether Python takes it for true.
func (v Value) True() bool {
	switch v.Form() {
	case FormAbsent, FormNone:
		return false
	case FormBool:
		b, _ := Bool(v)
		return b
	case FormInt:
		u, _, _ := readInteger(v)
		return u != 0
	case FormFloat:
		f, _ := readFloat(v)
		return f != 0
	case FormText, FormList, FormMap:
		h, err := readHead(v)
		return err != nil || h.size > 0
	}
	return true
}

// Text is its text; false: it is none.
func (v Value) Text() ([]byte, bool) {
	if v.Form() != FormText { // an error would cost memory
		return nil, false
	}
	return Bytes(v)
}

// Name is what a master calls by it when it makes a path, a tag or the key of a cache of it: its text, or what Python's
// str() makes of a value that is not text. False: it is not there, or a container.
func (v Value) Name() (string, bool) {
	switch v.Form() {
	case FormText:
		b, ok := v.Text()
		return string(b), ok
	case FormNone:
		return "None", true
	case FormBool:
		if b, _ := Bool(v); b {
			return "True", true
		}
		return "False", true
	case FormInt:
		if u, ok := Uint(v); ok {
			return strconv.FormatUint(u, 10), true
		}
		i, ok := Int(v)
		return strconv.FormatInt(i, 10), ok
	case FormFloat:
		f, ok := readFloat(v)
		return PythonFloat(f), ok
	}
	return "", false
}

func readFloat(v Value) (float64, bool) {
	switch len(v) {
	case 5:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(v[1:]))), true
	case 9:
		return math.Float64frombits(binary.BigEndian.Uint64(v[1:])), true
	}
	return 0, false
}

// PythonFloat is Python's str() of a float.
func PythonFloat(f float64) string {
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	case f != 0 && (math.Abs(f) < 1e-4 || math.Abs(f) >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
