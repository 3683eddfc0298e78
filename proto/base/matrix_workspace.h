// What optimizers that update a whole matrix work in, which plans make room
// for.
#ifndef TROUPE_PROTO_BASE_MATRIX_WORKSPACE_H_
#define TROUPE_PROTO_BASE_MATRIX_WORKSPACE_H_

#include <algorithm>
#include <cstdint>

namespace troupe {

// Muon (ops/muon.h), elements of f32: two matrices of its size, two square ones
// of its shorter side, each of whole lines of 64 bytes, and one line for a
// norm.
inline int64_t MuonWorkspace(int64_t rows, int64_t columns) {
  constexpr int64_t kLine = 16;
  const auto in_lines = [](int64_t elements) {
    return (elements + kLine - 1) / kLine * kLine;
  };
  const int64_t side = std::min(rows, columns);
  return 2 * in_lines(rows * columns) + 2 * in_lines(side * side) + kLine;
}

// Adafactor (ops/adafactor.h), elements of f32: two f64 for each row and two
// for the matrix, and an f32 for each row and column.
inline int64_t AdafactorWorkspace(int64_t rows, int64_t columns) {
  return 4 * (rows + 1) + rows + columns;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_MATRIX_WORKSPACE_H_
