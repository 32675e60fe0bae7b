"""Arrays that are not distributed: conversion of users' values, sparse rows, reductions on the host."""
