// Integers as our files hold them: least significant byte first, on any
// machine.
#ifndef TROUPE_STORAGE_ENGINE_LITTLE_ENDIAN_H_
#define TROUPE_STORAGE_ENGINE_LITTLE_ENDIAN_H_

#include <cstddef>

namespace troupe {

// Requires sizeof(Integer) bytes at `to`.
template <typename Integer>
void StoreLittleEndian(Integer value, char* to) {
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    to[i] = static_cast<char>(value >> (8 * i));
  }
}

// Requires sizeof(Integer) bytes at `from`; Integer is unsigned.
template <typename Integer>
Integer LoadLittleEndian(const char* from) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    value = static_cast<Integer>(
        value | static_cast<Integer>(static_cast<unsigned char>(from[i]))
                    << (8 * i));
  }
  return value;
}

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_LITTLE_ENDIAN_H_
