/*  test - cmocka with the headers it forgets to include; every unit test includes this one. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "common/base/status.h"

/*  A call must succeed; its words are printed when it does not. */
#define assert_ok(call)                                                                      \
    do {                                                                                     \
        const tt_status_t assert_ok_status_ = (call);                                        \
        if (assert_ok_status_ != TT_OK)                                                      \
            fail_msg("%s: %s: %s", #call, tt_status_name(assert_ok_status_), tt_err_text()); \
    } while (0)
