#include "cli/png_lib.h"
#include "common/base/dylib.h"

static png_lib_t s_table;
static const tt_symbol_t s_symbols[] = {{"png_image_write_to_memory", &s_table.write_to_memory}};
static tt_dylib_t s_library = TT_DYLIB("libpng16.so.16", "install libpng16-16, or render a GIF", s_symbols, NULL);

tt_status_t png_lib_load(const png_lib_t **out)
{
    TT_TRY(tt_dylib_load(&s_library));
    *out = &s_table;
    return TT_OK;
}
