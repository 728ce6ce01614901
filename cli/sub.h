/*  sub - finds `tutti PARENT NAME` in the table of commands and calls it. noun: what a NAME is called in messages ("benchmark"). */
#pragma once

int sub_dispatch(const char *parent, const char *noun, int argc, char **argv);
