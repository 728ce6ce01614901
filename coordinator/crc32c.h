/*  crc32c - the Castagnoli CRC (polynomial 0x1EDC6F41, reflected), eight bytes a step.
 *
 *  Source: RFC 3720, appendix B.4, has the test vectors. Threads: pure after crc32c_init. */
#pragma once
#include <stddef.h>
#include <stdint.h>

void crc32c_init(void); /* makes the tables; once */
uint32_t crc32c(const void *data, size_t size);
