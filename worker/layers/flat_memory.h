// Memory of a unit's flat buffer, or of the gradients of one: in one piece, or,
// where what is dealt over ranks was gathered apart from the rest
// (proto/plan/at_rest.h), in several.
#ifndef TROUPE_WORKER_LAYERS_FLAT_MEMORY_H_
#define TROUPE_WORKER_LAYERS_FLAT_MEMORY_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "proto/plan/layout.h"

namespace troupe {

class FlatMemory {
 public:
  FlatMemory() = default;
  // All of it.
  FlatMemory(void* all) : all_(static_cast<char*>(all)) {}  // NOLINT: implicit

  // These elements, each of `width` bytes, too.
  void Add(const Range& elements, void* memory, int64_t width) {
    char* const begin = static_cast<char*>(memory);
    if (!pieces_.empty()) {
      Piece& last = pieces_.back();
      if (last.elements.end == elements.begin &&
          last.memory + last.elements.size() * width == begin) {
        last.elements.end = elements.end;
        return;
      }
    }
    pieces_.push_back({elements, begin});
  }

  // Null: they are not there, or in several pieces.
  char* At(const Range& elements, int64_t width) const {
    if (all_ != nullptr) return all_ + elements.begin * width;
    for (const Piece& piece : pieces_) {
      if (elements.begin < piece.elements.begin ||
          elements.end > piece.elements.end) {
        continue;
      }
      return piece.memory + (elements.begin - piece.elements.begin) * width;
    }
    return nullptr;
  }

 private:
  struct Piece {
    Range elements;
    char* memory = nullptr;
  };

  char* all_ = nullptr;
  absl::InlinedVector<Piece, 4> pieces_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_FLAT_MEMORY_H_
