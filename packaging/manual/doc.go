// Package manual writes manual pages (man(7)). What stands in them comes from
// where the programs' own help comes from: their flags, their verbs, the
// option table.
//
// In: headings, paragraphs, items, examples, as plain text. Out: roff. Plain
// text never becomes a request of roff, whatever it contains. The same input
// gives the same bytes.
package manual
