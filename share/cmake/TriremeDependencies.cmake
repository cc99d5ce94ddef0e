# What Trireme is built from. jobscripts/setup.sh installs all of it; each lookup says what to install.

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
set(HDF5_PREFER_PARALLEL OFF)
find_package(HDF5 1.10 REQUIRED COMPONENTS C)
find_package(Boost 1.74 REQUIRED)  # Boost.DLL, headers alone
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)

# oneDNN 3.2 or newer: the system's, or the wheels that setup.sh unpacked beside the build.
find_package(dnnl 3.2 REQUIRED HINTS ${PROJECT_BINARY_DIR}/onednn ${PROJECT_SOURCE_DIR}/build/onednn)

# toml++ and xxHash bring no CMake package on Debian 12.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)

if(TRIREME_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI 3.1 REQUIRED COMPONENTS CXX)
  # How tests start ranks: as root, more ranks than cores, yielding while idle.
  set(TRIREME_MPIRUN ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none)
  set(TRIREME_MPIRUN_ENV
    "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_btl=self,vader,tcp;OMPI_MCA_btl_tcp_if_include=lo;OMPI_MCA_oob_tcp_if_include=lo;OMPI_MCA_plm=isolated;OMP_WAIT_POLICY=passive")
  if(TRIREME_SANITIZE)  # Open MPI unloads the modules that leaked, so no suppression can name them
    list(APPEND TRIREME_MPIRUN_ENV "ASAN_OPTIONS=detect_leaks=0")
  endif()
endif()
if(TRIREME_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
