/*  quantity - Kubernetes resource quantities. Grammar: k8s.io/apimachinery/pkg/api/resource, quantity.go: a signed
 *  decimal number and one suffix: n u m, k M G T P E (powers of 1000), Ki Mi Gi Ti Pi Ei (powers of 1024), or e<int>. */
#include "common/job/job.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *suffix;
    double factor;
} unit_t;

static const unit_t s_units[] = {{"", 1}, {"n", 1e-9}, {"u", 1e-6}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9},
    {"T", 1e12}, {"P", 1e15}, {"E", 1e18}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
    {"Pi", 0x1p50}, {"Ei", 0x1p60}};

enum { LENGTH_MAX = 64 };

static tt_status_t s_err(const char *text)
{
    return tt_err(TT_INVALID, "'%.80s' is not a quantity, as 2, 500m, 1.5Gi or 64e6", text);
}

/*  Bytes of [sign] digits [. digits], with at least one digit; 0: none. */
static size_t s_number(const char *text)
{
    static const char digits[] = "0123456789";
    const size_t sign = *text == '+' || *text == '-';
    const size_t whole = strspn(text + sign, digits);
    const char *point = text + sign + whole;
    const size_t part = *point == '.' ? strspn(point + 1, digits) : 0;
    return whole + part ? sign + whole + (*point == '.') + part : 0;
}

/*  "e3", "E-3": the factor; false when it is not one. */
static bool s_exponent(const char *text, double *out)
{
    if (*text != 'e' && *text != 'E')
        return false;
    const size_t sign = text[1] == '+' || text[1] == '-';
    const size_t digits = strspn(text + 1 + sign, "0123456789");
    if (digits == 0 || digits > 3 || text[1 + sign + digits])
        return false;
    *out = pow(10, (double)strtol(text + 1, NULL, 10));
    return true;
}

tt_status_t tt_quantity(double *out, const char *text)
{
    const size_t length = s_number(text);
    if (!length || strlen(text) > LENGTH_MAX)
        return s_err(text);
    const char *suffix = text + length;
    double factor = 0;
    if (!s_exponent(suffix, &factor)) {
        size_t i = 0;
        while (i < TT_COUNT(s_units) && strcmp(s_units[i].suffix, suffix) != 0)
            i++;
        if (i == TT_COUNT(s_units))
            return s_err(text);
        factor = s_units[i].factor;
    }
    char number[LENGTH_MAX + 1] = "";
    memcpy(number, text, length);
    const double value = strtod(number, NULL) * factor;
    if (!isfinite(value))
        return s_err(text);
    *out = value;
    return TT_OK;
}
