// Prints the page of the URL given, by Go's own resolver, TLS and HTTP.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer answer.Body.Close()
	io.Copy(os.Stdout, answer.Body)
	if answer.StatusCode != 200 {
		os.Exit(1)
	}
}
