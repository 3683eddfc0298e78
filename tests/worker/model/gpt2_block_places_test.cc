#include "worker/model/gpt2_block_places.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {
namespace {

// Places lie one behind the other, on cache lines, and fill the buffer.
void ExpectTiles(std::vector<TensorPlace> places, int64_t bytes) {
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  int64_t end = 0;
  for (const TensorPlace& place : places) {
    EXPECT_EQ(place.offset_bytes, (end + 63) / 64 * 64);
    int64_t elements = 1;
    for (const int64_t dim : place.dims) elements *= dim;
    end = place.offset_bytes + 4 * elements;
  }
  EXPECT_EQ(bytes, (end + 63) / 64 * 64);
}

TEST(Gpt2BlockPlacesTest, TileTheirBuffers) {
  const ModelSpec model = Gpt2Model({.hidden = 15, .intermediate = 23});
  const Gpt2BlockPlaces p(model, {.sequences = 3, .sequence_length = 7});
  ExpectTiles({p.activation}, p.activation_layout.bytes());
  ExpectTiles(
      {p.mean_1, p.rstd_1, p.mean_2, p.rstd_2, p.logsumexp, p.norm_1, p.qkv,
       p.attention, p.residual, p.norm_2, p.before_gelu, p.after_gelu},
      p.stash_layout.bytes());
  ExpectTiles({p.d_norm_1, p.d_qkv, p.d_residual, p.d_norm_2, p.d_before_gelu},
              p.weight_stash_layout.bytes());
  ExpectTiles({p.masked}, p.workspace_layout.bytes());
}

TEST(Gpt2DecodePlacesTest, TileTheWorkspace) {
  const Gpt2DecodePlaces p(Gpt2Model({.hidden = 15, .intermediate = 23}),
                           {.sequence_length = 5});
  ExpectTiles({p.norm, p.qkv, p.attention, p.residual, p.after_gelu},
              p.layout.bytes());
}

}  // namespace
}  // namespace troupe
