package fastrsa

import (
	"errors"
	"math/big"
	"sync"

	"filippo.io/bigmod"
)

const (
	together = 4 // operations at once
	eight    = 2 * together

	fourWindowBits = 4 // a table of windows of five does not fit into the first cache
	fourEntries    = 1 << fourWindowBits
)

// octet is eight numbers of twenty digits beside each other, digit by digit: number 2i is that of the i-th operation modulo the first prime, 2i+1 modulo the
// second one.
type octet [20 * eight]uint64

// of has digits in lanes of one of the numbers, as a pair has them.
func (o *octet) of(number int, digits []uint64) {
	for i := range digits[:len(o)/eight] {
		digits[i] = o[i*eight+number]
	}
}

func (o *octet) set(number int, digits []uint64) {
	for i, digit := range digits[:len(o)/eight] {
		o[i*eight+number] = digit
	}
}

// twice has a pair as each of the four.
func (o *octet) twice(p pair) {
	for i := range eight {
		o.set(i, p.of(i%2))
	}
}

// four is what a key needs for four operations at once.
type four struct {
	moduli          [21 * eight]uint64 // as the assembly finds them
	squares, uppers octet              // as the key's
	exponents       [2][]byte          // in windows, high ones first
}

// newFour is nil for keys of an engine that does not know how.
func (k *Key) newFour(dp, dq *big.Int) *four {
	if k.shape.engine != ifma {
		return nil
	}
	f := new(four)
	f.squares.twice(k.squares)
	f.uppers.twice(k.uppers)
	var primes octet
	primes.twice(pair(k.moduli[:2*k.shape.lanes]))
	copy(f.moduli[:], primes[:])
	for i := range eight {
		f.moduli[len(primes)+i] = k.moduli[2*k.shape.lanes+i%2]
	}
	clear(primes[:])
	f.exponents = [2][]byte{k.shape.windows(dp, fourWindowBits), k.shape.windows(dq, fourWindowBits)}
	return f
}

// fourspace is room for four operations, all noughts when nobody has it.
type fourspace struct {
	table                     [fourEntries]octet
	upper, power, factor, one octet
	columns                   [2 * len(octet{})]uint64 // of a square
	which                     [eight]uint64
	digits                    [24]uint64
	pair                      [2 * 24]uint64
}

var fourspaces = sync.Pool{New: func() any { return new(fourspace) }}

// noEight is as many noughts as the moduli of eight numbers.
var noEight [21 * eight]uint64

// Together is how many operations PrivateAll does at once: one where it wins nothing.
func (k *Key) Together() int {
	if k.four == nil {
		return 1
	}
	return together
}

// PrivateAll is Private of each number. Where the processor is good at it four of them are reckoned at once, in two thirds of the time; one that could not be
// has an error and no result, as Private's.
func (k *Key) PrivateAll(numbers [][]byte) (powers [][]byte, errs []error) {
	powers, errs = make([][]byte, len(numbers)), make([]error, len(numbers))
	sound, nats := make([]int, 0, len(numbers)), make([]*bigmod.Nat, len(numbers))
	for i, c := range numbers { // those that are none modulo the key take nobody's place
		if nats[i] = bigmod.NewNat(); k.takes(nats[i], c) {
			sound = append(sound, i)
		} else {
			errs[i] = ErrRange
		}
	}
	if k.four != nil {
		for ; len(sound) >= together; sound = sound[together:] {
			k.privateFour(sound[:together], numbers, nats, powers, errs)
		}
	}
	for _, i := range sound {
		powers[i], errs[i] = k.Private(numbers[i])
	}
	return powers, errs
}

// privateFour is of four of the numbers, which are numbers modulo the key: nats are what they are.
func (k *Key) privateFour(which []int, numbers [][]byte, nats []*bigmod.Nat, powers [][]byte, errs []error) {
	w := fourspaces.Get().(*fourspace)
	defer fourspaces.Put(w)
	defer func() { *w = fourspace{} }()
	check := workspaces.Get().(*workspace)
	defer workspaces.Put(check)
	defer clear(check[:])
	var four [together][]byte
	for at, i := range which {
		four[at] = numbers[i]
	}
	k.expFour(w, four[:])
	power := pair(w.pair[:])
	for at, i := range which {
		w.power.of(2*at, power.of(0))
		w.power.of(2*at+1, power.of(1))
		if powers[i], errs[i] = k.combine(check, power, nats[i], numbers[i]); errors.Is(errs[i], ErrFaulty) {
			k.faults.Add(1)
		}
	}
}

// expFour is exp for four numbers, which are as long as the modulus.
func (k *Key) expFour(w *fourspace, numbers [][]byte) {
	s, f, x := k.shape, k.four, &w.table[1]
	for i, c := range numbers {
		s.split(w.digits[:], c[:s.size()])
		w.upper.set(2*i, w.digits[:])
		w.upper.set(2*i+1, w.digits[:])
		s.split(w.digits[:], c[s.size():])
		x.set(2*i, w.digits[:])
		x.set(2*i+1, w.digits[:])
	}
	for i := range eight {
		w.one[i] = 1
	}
	w.upper.multiply(&w.upper, &f.uppers, &f.moduli)
	x.multiply(x, &f.squares, &f.moduli)
	for i := range x {
		x[i] += w.upper[i]
	}
	for i := range eight {
		x.of(i, w.digits[:])
		s.carry(w.digits[:])
		x.set(i, w.digits[:])
	}

	w.table[0].multiply(&w.one, &f.squares, &f.moduli)
	for i := 2; i < fourEntries; i++ {
		w.table[i].multiply(&w.table[i-1], x, &f.moduli)
	}
	w.choose(&w.power, f, 0)
	for i := 1; i < len(f.exponents[0]); i++ {
		w.power.square(&f.moduli, &w.columns, fourWindowBits)
		w.choose(&w.factor, f, i)
		w.power.multiply(&w.power, &w.factor, &f.moduli)
	}
	w.power.multiply(&w.power, &w.one, &f.moduli)
	w.factor.multiply(&w.one, &w.one, &noEight) // over what the assembly has left in registers
}

// choose takes from the table what an exponent's window wants, for each number.
func (w *fourspace) choose(dst *octet, f *four, window int) {
	for i := range w.which {
		w.which[i] = uint64(f.exponents[i%2][window])
	}
	w.chosen(dst)
}
