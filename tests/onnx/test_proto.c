/*  The bytes of protobuf's fields, as protobuf.dev/programming-guides/encoding shows them; and those of a small model. */
#include "common/onnx/proto.h"
#include <string.h>
#include "common/onnx/model.h"
#include "tests/test.h"

static void s_are(tt_buf_t *buf, const char *bytes, size_t size)
{
    assert_int_equal(buf->size, size);
    assert_memory_equal(buf->data, bytes, size);
    tt_buf_clear(buf);
}

static void test_fields(void **state)
{
    (void)state;
    tt_buf_t buf, inner;
    tt_buf_init(&buf, 4096);
    tt_buf_init(&inner, 4096);
    tt_proto_int(&buf, 1, 150);
    s_are(&buf, "\x08\x96\x01", 3);
    tt_proto_int(&buf, 1, 0);
    s_are(&buf, "\x08\x00", 2);
    tt_proto_int(&buf, 1, -2);
    s_are(&buf, "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    tt_proto_text(&buf, 2, "testing");
    s_are(&buf, "\x12\x07testing", 9);
    tt_proto_float(&buf, 20, 1.0f);
    s_are(&buf, "\xa5\x01\x00\x00\x80\x3f", 6);
    tt_proto_int(&inner, 1, 150);
    tt_proto_message(&buf, 3, &inner);
    s_are(&buf, "\x1a\x03\x08\x96\x01", 5);
    assert_int_equal(inner.size, 0);
    tt_proto_message(&buf, 3, &inner);
    s_are(&buf, "\x1a\x00", 2);
    tt_buf_free(&buf);
    tt_buf_free(&inner);
}

/*  y = Relu(x) with a batch, an attribute and a pair of texts. */
static void test_model(void **state)
{
    (void)state;
    static const char expected[] =
        "\x08\x08\x12\x01T\x1a\x01V\x42\x04\x0a\x00\x10\x11\x72\x06\x0a\x01k\x12\x01v" /* ir, producer, opset, meta */
        "\x3a\x3e"                                                                     /* graph                     */
        "\x5a\x11\x0a\x01x\x12\x0c\x0a\x0a\x08\x01\x12\x06\x0a\x04\x12\x02no"          /* input [no]                */
        "\x0a\x1a\x0a\x01x\x12\x01y\x1a\x01y\x22\x02Op\x2a\x0b\x0a\x04"
        "axis\xa0\x01\x02\x18\x01" /* node     */
        "\x2a\x0a\x08\x01\x10\x02\x42\x01"
        "c\x4a\x01\x07" /* constant: uint8 [1] = 7   */
        "\x12\x01g";
    tt_onnx_t *model = tt_onnx_new();
    tt_onnx_input(model, "x", &(tt_onnx_shape_t){.type = TT_ONNX_FLOAT, .rank = 1, .rows = "no"});
    tt_onnx_node(model, "Op", (const char *const[]){"x", NULL}, "y",
        (const tt_onnx_attribute_t[]){{.name = "axis", .kind = TT_ONNX_A_INT, .integer = {1}}, {0}});
    tt_onnx_constant(model, "c", &(tt_onnx_shape_t){.type = TT_ONNX_UINT8, .rank = 1, .dim = {1}}, "\x07");
    tt_onnx_meta(model, "k", "v");
    const tt_buf_t *bytes = tt_onnx_finish(model, "g", "T", "V");
    assert_int_equal(bytes->size, sizeof expected - 1);
    assert_memory_equal(bytes->data, expected, sizeof expected - 1);
    tt_onnx_destroy(&model);
    assert_null(model);
    tt_onnx_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
