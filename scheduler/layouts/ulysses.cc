// DeepSpeed-Ulysses (arXiv 2309.14509): the positions of each sequence are cut
// over the ranks of an axis, and everything but attention computes on its own.
// Around attention two all-to-alls turn that into whole sequences of some of
// the heads, and back. Where there are fewer key-value heads than ranks,
// neighbours are sent the same ones.
//
// With rings (USP, arXiv 2405.07719): so many neighbours do that, and each such
// group is one member of a ring (ring_attention.cc).
#include "scheduler/layouts/layouts.h"

namespace troupe {

namespace {

std::vector<DimRule> SequenceOrHeads() {
  return {{.kind = Dim::SEQUENCE,
           .field = "training.sequence_length",
           .loaded = true},
          {.kind = Dim::HEADS,
           .field = "model.num_attention_heads",
           .turned = true},
          {.kind = Dim::KEY_VALUE_HEADS,
           .field = "model.num_key_value_heads",
           .shares = true,
           .turned = true}};
}

}  // namespace

LayoutRow Ulysses() {
  return {.name = "ulysses",
          .axis = "context",
          .used =
              [](const ParallelismSpec& p) {
                return p.context() > 1 && p.context_method() == "ulysses";
              },
          .rules = SequenceOrHeads()};
}

LayoutRow UlyssesInRings() {
  return {.name = "usp",
          .axis = "ulysses",
          .used =
              [](const ParallelismSpec& p) {
                return p.context_method() == "usp" && p.ulysses_size() > 1;
              },
          .rules = SequenceOrHeads()};
}

}  // namespace troupe
