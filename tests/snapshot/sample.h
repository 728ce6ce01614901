/*  sample - a small snapshot of any update, whole, for tests that need one to be there. */
#pragma once
#include "common/base/buf.h"
#include "common/snapshot/snapshot.h"

extern float sample_params[6]; /* its weights: a 2 x 2 layer and its bias */

/*  What a reader of it has to expect. */
tt_snapshot_t sample_expect(void);
/*  Its bytes; the caller frees. */
void sample_encode(tt_buf_t *out, uint64_t update);
/*  Any bytes / a sample as the file FOLDER/NAME. */
void sample_save(const char *folder, const char *name, const void *bytes, size_t size);
void sample_write(const char *folder, const char *name, uint64_t update);
/*  A sample with a replay, whose older part is in these pieces. */
void sample_write_pieces(const char *folder, const char *name, uint64_t update, const tt_piece_t *piece, size_t pieces);
/*  A bare one as FOLDER/best.safetensors. */
void sample_write_best(const char *folder, uint64_t update, double return_mean);
/*  Flip a bit in the middle of FOLDER/NAME. */
void sample_damage(const char *folder, const char *name);
