/*  Finding NVIDIA's cuBLASLt: where it is not, what to install is said; where it is, all its calls are there and descriptors can be made, which
 *  needs no card. */
#include <string.h>
#include "common/base/status.h"
#include "common/nn/cuda/lt.h"
#include "tests/test.h"

static void assert_describes(const cuda_lt_t *lt)
{
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatrixLayout_t layout = NULL;
    cublasLtMatmulPreference_t pref = NULL;
    const cublasOperation_t turned = CUBLAS_OP_T;
    const uint32_t split = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    assert_int_equal(
        lt->cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(lt->cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned),
        CUBLAS_STATUS_SUCCESS);
    assert_int_equal(lt->cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 64, 32, 64), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(lt->cublasLtMatmulPreferenceCreate(&pref), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(lt->cublasLtMatmulPreferenceSetAttribute(
                         pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &split, sizeof split),
        CUBLAS_STATUS_SUCCESS);
    assert_int_equal(lt->cublasLtMatmulPreferenceDestroy(pref), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(lt->cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(lt->cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS);
}

static void test_load(void **state)
{
    const cuda_lt_t *lt = NULL;
    (void)state;
    const tt_status_t status = cuda_lt_load(&lt);
    if (status != TT_OK) {
        assert_int_equal(status, TT_UNSUPPORTED);
        assert_non_null(strstr(tt_err_text(), "libcublasLt.so.1"));
        assert_non_null(strstr(tt_err_text(), "install NVIDIA's package libcublas-1"));
        assert_non_null(strstr(tt_err_text(), "or say learner.precision: exact"));
        return;
    }
    cublasLtHandle_t handle = NULL;
    assert_true(lt->cublasLtGetVersion() >= 120000);
    assert_describes(lt);
    const cublasStatus_t code = lt->cublasLtCreate(&handle);
    print_message("cuBLASLt %zu: a handle: %s\n", lt->cublasLtGetVersion(), lt->cublasLtGetStatusString(code));
    if (code == CUBLAS_STATUS_SUCCESS)
        assert_int_equal(lt->cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
    else
        assert_int_equal(code, CUBLAS_STATUS_NOT_INITIALIZED); /* no driver */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_load)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
