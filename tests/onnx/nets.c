/*  nets DIR - every network of tests/nn/fixture.c, and once more with an LSTM and with a GRU in it, as DIR/<n>.onnx, with heads
 *  "head.<tower>", and in DIR/<n>.safetensors observations ("obs.<part>") and the heads that Tutti makes of them. What recurrent ones
 *  carry goes in as "carry" and out as "head.carry". For nets.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/nn/safetensors.h"
#include "common/onnx/net.h"
#include "tests/nn/fixture.h"

enum { ROWS = 37 };

typedef struct {
    place_t place;
    const tt_net_spec_t *spec;
    tt_net_t *net;
    rows_t rows;
    float *carry, *carried; /* of a recurrent network: what goes into the step and out of it, [ROWS][C] */
    tt_onnx_t *model;
    tt_st_array_t array[TT_PARTS_MAX + TT_TOWERS_MAX + 2];
    size_t arrays;
} self_t;

static void s_array(self_t *self, const char *name, tt_st_type_t type, uint32_t columns, void *data)
{
    tt_st_array_t *array = &self->array[self->arrays++];
    *array = (tt_st_array_t){
        .type = type, .rank = 2, .shape = {ROWS, columns}, .data = data, .bytes = ROWS * columns * tt_st_size(type)};
    snprintf(array->name, sizeof array->name, "%s", name);
}

/*  Numbers first .. first + elements - 1 of each row. */
static void s_part(self_t *self, tt_onnx_net_t *net, uint32_t p, uint32_t first)
{
    const tt_net_spec_t *spec = self->spec;
    const tt_part_t part = spec->parts ? spec->part[p] : (tt_part_t){.elements = spec->obs};
    float *numbers = tt_array0((size_t)ROWS * part.elements, sizeof *numbers);
    uint8_t *bytes = tt_array0((size_t)ROWS * part.elements, 1);
    for (size_t i = 0; i < (size_t)ROWS * part.elements; i++) {
        numbers[i] = self->rows.data[i / part.elements * spec->obs + first + i % part.elements];
        bytes[i] = part.bytes ? (uint8_t)numbers[i] : 0;
    }
    snprintf(net->part[p].name, sizeof net->part[p].name, "obs.%u", p);
    tt_onnx_input(self->model, net->part[p].name,
        &(tt_onnx_shape_t){
            .type = part.bytes ? TT_ONNX_UINT8 : TT_ONNX_FLOAT, .rank = 2, .dim = {0, part.elements}, .rows = "batch"});
    s_array(self, net->part[p].name, part.bytes ? TT_ST_U8 : TT_ST_F32, part.elements,
        part.bytes ? (void *)bytes : (void *)numbers);
    free(part.bytes ? (void *)numbers : (void *)bytes);
}

static void s_head(self_t *self, tt_onnx_net_t *net, uint32_t t, float *numbers)
{
    char name[32];
    snprintf(name, sizeof name, "head.%u", t);
    tt_onnx_node(self->model, "Identity", (const char *const[]){tt_onnx_tower(net, t), NULL}, name, NULL);
    tt_onnx_output(self->model, name,
        &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 2, .dim = {0, self->spec->tower[t].out}, .rows = "batch"});
    s_array(self, name, TT_ST_F32, self->spec->tower[t].out, numbers);
}

static void s_carry(self_t *self, tt_onnx_net_t *net)
{
    const uint32_t floats = tt_net_carry(self->spec);
    const tt_onnx_shape_t shape = {.type = TT_ONNX_FLOAT, .rank = 2, .dim = {0, floats}, .rows = "batch"};
    assert_int_equal(tt_onnx_carry(net, "head.carry"), floats);
    if (floats == 0)
        return;
    tt_onnx_input(self->model, net->carry.name, &shape);
    tt_onnx_output(self->model, "head.carry", &shape);
    s_array(self, net->carry.name, TT_ST_F32, floats, self->carry);
    s_array(self, "head.carry", TT_ST_F32, floats, self->carried);
}

/*  Heads, and what is carried. */
static void s_forward(self_t *self, float *const *out)
{
    const size_t floats = tt_net_carry(self->spec);
    tt_table_t *table = NULL;
    self->carry = floats ? tt_array0(ROWS * floats, sizeof *self->carry) : NULL;
    self->carried = floats ? tt_array0(ROWS * floats, sizeof *self->carried) : NULL;
    for (size_t i = 0; i < ROWS * floats; i++)
        self->carry[i] = fixture_number(7, i);
    const tt_carry_t carry = {.in = self->carry, .out = self->carried};
    assert_ok(tt_table_new(&table, self->place.device, tt_net_row_bytes(self->spec)));
    assert_ok(tt_table_put_rows(table, self->place.stream, (const void *const *)self->rows.by_number, ROWS));
    assert_ok(tt_net_forward(self->net, self->place.stream, 0, table, ROWS, floats ? &carry : NULL, out));
    assert_ok(tt_stream_sync(self->place.stream));
    tt_table_destroy(&table);
}

static void s_fill(self_t *self, const float *params)
{
    const tt_net_spec_t *spec = self->spec;
    tt_onnx_net_t net = {.model = self->model, .spec = spec, .params = params, .carry = {"carry"}};
    net.tensor = tt_net_tensors(self->net, &net.tensors);
    float *out[TT_TOWERS_MAX] = {NULL};
    for (uint32_t p = 0, first = 0; p < (spec->parts ? spec->parts : 1); first += spec->part[p++].elements)
        s_part(self, &net, p, first);
    for (uint32_t t = 0; t < spec->towers; t++)
        out[t] = spec->tower[t].out ? tt_array0((size_t)ROWS * spec->tower[t].out, sizeof(float)) : NULL;
    s_forward(self, out);
    for (uint32_t t = 0; t < spec->towers; t++)
        if (out[t])
            s_head(self, &net, t, out[t]);
    s_carry(self, &net);
}

static void s_save(self_t *self, const char *folder, size_t number)
{
    char path[4096];
    tt_buf_t bytes;
    tt_buf_init(&bytes, (size_t)1 << 31);
    const tt_buf_t *model = tt_onnx_finish(self->model, "net", "tutti", TT_VERSION);
    snprintf(path, sizeof path, "%s/%zu.onnx", folder, number);
    assert_ok(tt_file_save(path, model->data, model->size, false));
    assert_ok(tt_st_encode(&bytes, self->array, self->arrays, NULL, 0));
    snprintf(path, sizeof path, "%s/%zu.safetensors", folder, number);
    assert_ok(tt_file_save(path, bytes.data, bytes.size, false));
    tt_buf_free(&bytes);
}

static void s_net(const char *folder, const tt_net_spec_t *spec, size_t number)
{
    self_t self = {.spec = spec, .model = tt_onnx_new()};
    fixture_open(&self.place, 1);
    self.net = fixture_net(&self.place, self.spec);
    assert_ok(tt_net_noise(self.net, self.place.stream, 0, NULL)); /* a policy that is exported has means */
    self.rows = fixture_rows(self.spec, ROWS);
    float *params = fixture_params(&self.place, self.net, 0);
    s_fill(&self, params);
    s_save(&self, folder, number);
    for (size_t i = 0; i < self.arrays; i++)
        free((void *)self.array[i].data);
    free(params);
    fixture_rows_free(&self.rows);
    tt_onnx_destroy(&self.model);
    tt_net_destroy(&self.net);
    fixture_close(&self.place);
}

static const char *s_folder;

static void test_all(void **state)
{
    (void)state;
    for (size_t number = 0; number < fixture_spec_count; number++)
        s_net(s_folder, &fixture_specs[number], number);
    printf("%zu networks\n", fixture_spec_count);
}

/*  Where one has a place: not in a network that would have too many towers. */
static size_t s_remember(tt_tower_kind_t kind, size_t number)
{
    size_t made = 0;
    for (size_t i = 0; i < fixture_spec_count; i++) {
        tt_net_spec_t spec = fixture_specs[i];
        tt_net_put_recurrent(&spec, kind, 3 + (uint32_t)i % 16, (i + kind) % 2);
        if (tt_spec_check(&spec) == TT_OK && tt_net_carry(&spec) && !tt_net_carry(&fixture_specs[i]))
            s_net(s_folder, &spec, number + made++);
    }
    return made;
}

static void test_recurrent(void **state)
{
    (void)state;
    const size_t first = fixture_spec_count, lstm = s_remember(TT_TOWER_LSTM, first),
                 gru = s_remember(TT_TOWER_GRU, first + lstm);
    printf("%zu with an LSTM, %zu with a GRU\n", lstm, gru);
    assert_true(lstm > 15 && gru > 15);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_recurrent)};
    s_folder = argc == 2 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
