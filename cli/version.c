/*  version - what this binary is, for a bug report. */
#include "cli/cmd.h"
#include <czmq.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <yaml.h>

const tt_option_t tt_opt_version[] = {
    {"output", 0, "text|json", "text (default) or one JSON object"},
    {0},
};

#if defined(__x86_64__)
#define MACHINE "x86-64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#else
#define MACHINE "unknown"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define BUILD "address sanitizer"
#elif defined(__SANITIZE_THREAD__)
#define BUILD "thread sanitizer"
#else
#define BUILD "release"
#endif

static json_t *s_libraries(void)
{
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    return json_pack("{s:o, s:o, s:s, s:s, s:s}", "zmq", json_sprintf("%d.%d.%d", major, minor, patch), "czmq",
        json_sprintf("%d.%d.%d", CZMQ_VERSION_MAJOR, CZMQ_VERSION_MINOR, CZMQ_VERSION_PATCH), "yaml",
        yaml_get_version_string(), "sqlite", sqlite3_libversion(), "jansson", jansson_version_str());
}

int tt_cmd_version(int argc, char **argv)
{
    int code;
    TT_AUTO(tt_args) args = tt_args_new(&code, "version", argc, argv);
    if (!args)
        return code;
    json_t *libraries = s_libraries();
    if (tt_arg_is(args, "output", "json")) {
        json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:O}", "tutti", TT_VERSION, "compiler", __VERSION__, "machine",
            MACHINE, "build", BUILD, "libraries", libraries);
        json_dumpf(all, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(all);
    } else {
        printf("tutti %s (%s, %s, compiler %s)\n", TT_VERSION, MACHINE, BUILD, __VERSION__);
        const char *name;
        json_t *version;
        json_object_foreach(libraries, name, version) printf("%-8s %s\n", name, json_string_value(version));
    }
    json_decref(libraries);
    return 0;
}
