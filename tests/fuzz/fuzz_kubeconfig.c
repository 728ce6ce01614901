/*  Any bytes as a kubeconfig file, and as a credential plug-in's answer: a configuration that holds what its header
 *  promises, or an error with words; never a crash. Base64 must survive there and back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/mem.h"
#include "common/base/base64.h"
#include "k8s/api/exec.h"
#include "k8s/api/kubeconfig_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void s_config(const char *text, size_t size)
{
    tt_manifest_t *file = NULL;
    kube_config_t *config = NULL;
    tt_status_t status = tt_manifest_parse(&file, text, size, "/nowhere/fuzz");
    if (status == TT_OK)
        status = kube_config_from_files(&config, &file, 1, &(kube_config_opts_t){0});
    if (status != TT_OK && (!*tt_err_text() || config))
        abort();
    if (status == TT_OK &&
        (!config->server || !config->context || !config->namespace_ || !config->cert_pem != !config->key_pem))
        abort();
    if (config && config->exec)
        free(kube_exec_info(config));
    kube_config_destroy(&config);
    tt_manifest_destroy(&file);
}

static void s_answer(const char *text, size_t size)
{
    kube_exec_credential_t credential = {0};
    const tt_status_t status = kube_exec_read(&credential, "client.authentication.k8s.io/v1", text, size);
    if (status == TT_OK ? !credential.token && !credential.cert_pem : !*tt_err_text())
        abort();
    kube_exec_credential_clear(&credential);
}

static void s_base64(const char *text, size_t size)
{
    size_t back_size = 0;
    char *encoded = tt_base64_encode(text, size), *back = tt_base64_decode(encoded, &back_size);
    if (!back || back_size != size || memcmp(back, text, size) != 0)
        abort();
    free(encoded);
    free(back);
    free(tt_base64_decode(text, &back_size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = tt_new0(size + 1);
    memcpy(text, data, size);
    s_config(text, size);
    s_answer(text, size);
    s_base64(text, size);
    free(text);
    return 0;
}
