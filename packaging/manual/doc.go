// Package manual writes manual pages (man(7)). Their content has the same
// sources as the programs' own help: flags, verbs, the option table.
//
// In: headings, paragraphs, items, examples, as plain text. Out: roff. Plain
// text never becomes a request of roff, whatever it contains. The same input
// gives the same bytes.
package manual
