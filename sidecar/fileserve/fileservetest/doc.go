// Package fileservetest is the corpus by which answers about files are compared: trees, configurations of a master,
// requests, and a way to print answers so that equal ones print equally. The tests of fileserve run it against the code
// of stock masters and against a recording of their answers; a scenario runs it against running masters.
package fileservetest
