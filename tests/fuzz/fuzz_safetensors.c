/*  fuzz_safetensors - arbitrary bytes as a file: refused with words, or arrays that can be read to their last byte and
 *  encoded again. */
#include <stdlib.h>
#include "common/base/buf.h"
#include "common/nn/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t read_all(const tt_st_array_t *array)
{
    uint64_t sum = 0, elements = 1;
    for (size_t i = 0; i < array->bytes; i++)
        sum += ((const uint8_t *)array->data)[i];
    for (uint32_t i = 0; i < array->rank; i++)
        elements *= array->shape[i];
    TT_CHECK(elements <= array->bytes);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_st_t *file = NULL, *again = NULL;
    const tt_status_t status = tt_st_decode(&file, data, size);
    if (status != TT_OK) {
        TT_CHECK(status == TT_DATA && *tt_err_text() && !file);
        return 0;
    }
    size_t count = 0;
    volatile uint64_t sum = 0;
    const tt_st_array_t *arrays = tt_st_arrays(file, &count);
    for (size_t i = 0; i < count; i++)
        sum += read_all(&arrays[i]);
    (void)sum; /* every byte was touched: that is what it is for */
    tt_buf_t out;
    tt_buf_init(&out, (size_t)1 << 26);
    TT_CHECK(tt_st_encode(&out, arrays, count, NULL, 0) == TT_OK);
    TT_CHECK(tt_st_decode(&again, out.data, out.size) == TT_OK);
    tt_buf_free(&out);
    tt_st_destroy(&again);
    tt_st_destroy(&file);
    return 0;
}
