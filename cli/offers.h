/*  offers - what may stand in place of the last word of a command line: the completion of zsh and fish, which ask this at every key.
 *
 *  By the tables that make --help, as the script for bash. The shell leaves out what does not begin like the word.
 *
 *  Threads: main thread. */
#pragma once
#include <stddef.h>
#include <stdio.h>

/*  word[count]: behind `tutti`, the one being typed last (may be ""). One offer a line; OFFERS_FILES and OFFERS_FOLDERS say that the
 *  shell knows more. An offer that ends in '=' or '.' wants something behind it. */
#define OFFERS_FILES   ":files"
#define OFFERS_FOLDERS ":folders"
void offers_print(FILE *out, const char *const *word, size_t count);
