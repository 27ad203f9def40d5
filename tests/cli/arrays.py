# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's files with nothing but the standard library, so that the tests run where NumPy is not."""
import ast
import struct
import zipfile


def npy(values, shape=None, descr='<f8', fortran=False):
    """The bytes of a .npy file; `values` flat, in the order that `fortran` says."""
    if shape is None:
        shape = (len(values),)
    code = {'<f8': 'd', '<f4': 'f', '<i8': 'q', '>f8': 'd', '<c16': 'd'}.get(descr)
    order = '>' if descr[0] == '>' else '<'
    body = values if isinstance(values, bytes) else struct.pack(f'{order}{len(values)}{code}', *values)
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}".encode()
    header += b' ' * (-(10 + len(header) + 1) % 64) + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + body


def read_npy(data):
    """(values, shape, descr, fortran) of a version 1.0 file."""
    assert data[:8] == b'\x93NUMPY\x01\x00', data[:8]
    length, = struct.unpack('<H', data[8:10])
    header = ast.literal_eval(data[10:10 + length].decode())
    code = {'<f8': 'd', '<f4': 'f'}[header['descr']]
    body = data[10 + length:]
    count = len(body) // struct.calcsize(code)
    return list(struct.unpack(f'<{count}{code}', body)), header['shape'], header['descr'], header['fortran_order']


def npz(path, compress=False, **arrays):
    """Arrays are lists (of f64) or the bytes of a .npy file."""
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, 'w', method) as archive:
        for name, array in arrays.items():
            archive.writestr(name + '.npy', array if isinstance(array, bytes) else npy(array))


def read_npz(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name[:-4]: read_npy(archive.read(name)) for name in archive.namelist()}
