#include "coordinator/crc32c.h"
#include <string.h>

static uint32_t s_table[8][256]; /* [k][b]: CRC of byte b with k zero bytes behind it */

void crc32c_init(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
        s_table[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            s_table[k][byte] = (s_table[k - 1][byte] >> 8) ^ s_table[0][s_table[k - 1][byte] & 255];
}

uint32_t crc32c(const void *data, size_t size)
{
    const uint8_t *at = data;
    uint32_t crc = UINT32_MAX;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t next = 0;
        for (int k = 0; k < 4; k++) /* the first four bytes meet the CRC so far, the others only the tables */
            next ^= s_table[7 - k][((crc >> (8 * k)) ^ at[k]) & 255] ^ s_table[3 - k][at[4 + k]];
        crc = next;
    }
    for (; size > 0; size--, at++)
        crc = (crc >> 8) ^ s_table[0][(crc ^ *at) & 255];
    return ~crc;
}
