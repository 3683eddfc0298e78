// Cuts the numbers of a test as communicators cut a buffer for their backends.
//
//   RingAllGather(wires, EvenBlocks(values, wires.size()).blocks());
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_EVEN_BLOCKS_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_EVEN_BLOCKS_H_

#include <vector>

#include "absl/types/span.h"
#include "worker/collective/blocks.h"

namespace troupe {

class EvenBlocks {
 public:
  template <typename T>
  EvenBlocks(std::vector<T>& values, int members)
      : whole_(CommBuffer::Of(absl::MakeSpan(values))) {
    for (int i = 0; i < members; ++i) {
      ranges_.push_back(
          BlockOf({.elements = whole_.elements, .members = members}, i));
    }
  }

  // While this lives.
  CommBlocks blocks() const { return {whole_, ranges_}; }

 private:
  const CommBuffer whole_;
  std::vector<ElementRange> ranges_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_EVEN_BLOCKS_H_
