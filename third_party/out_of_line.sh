#!/usr/bin/env bash
# out_of_line.sh FILE.pb.h FILE.pb.cc: takes two constructors of each message, X()
# and X(X&&), from the header to the source. Where one stands in a precompiled
# header, clang looks for the class's virtual functions at the end of every source,
# and reads the whole class for that, used or not (clang 14,
# Sema::DefineUsedVTables). What is not written as here stays where it is.
set -eu
header=$1 source=$2

default='^  inline (\w+)\(\) : \1\(nullptr\) \{\}$'
move='^  (\w+)\(\1&& from\) noexcept\n    : \1\(\) \{\n    \*this = ::std::move\(from\);\n  \}$'
# Takes the four lines of a moving constructor for one.
joined='/^  (\w+)\(\1&& from\) noexcept$/{N;N;N}'

definitions=$(sed -nE "$joined;
  s/$default/\1::\1() : \1(nullptr) {}/p
  s/$move/\1::\1(\1\&\& from) noexcept : \1() { *this = ::std::move(from); }/p" \
  "$header")
sed -i -E "$joined;s/$default/  \1();/;s/$move/  \1(\1\&\& from) noexcept;/" "$header"
sed -i '/@@protoc_insertion_point(namespace_scope)/r /dev/stdin' "$source" \
  <<< "$definitions"
